package omnicluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
)

const (
	mapperNamespace   = "team"
	mapperClusterName = "demo"
)

func mapperMeta(name string, uid types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: mapperNamespace, Name: name, UID: uid, Generation: 1}
}

func mapperCluster() *v1alpha1.OmniCluster {
	return &v1alpha1.OmniCluster{
		ObjectMeta: mapperMeta(mapperClusterName, "uid-demo"),
		Spec:       v1alpha1.OmniClusterSpec{ConnectionRef: v1alpha1.LocalObjectReference{Name: "omni"}},
	}
}

func mapperWorkers(name string) *v1alpha1.OmniWorkers {
	return &v1alpha1.OmniWorkers{
		ObjectMeta: mapperMeta(name, types.UID("uid-"+name)),
		Spec:       v1alpha1.OmniWorkersSpec{ClusterRef: v1alpha1.LocalObjectReference{Name: mapperClusterName}},
	}
}

// newMapper returns a Mapper over an API with these objects, the OmniConnection omni and the indexes.
func newMapper(t *testing.T, objects ...client.Object) *Mapper {
	t.Helper()

	api := looptest.NewAPI(objects...).WithObjects(&v1alpha1.OmniConnection{ObjectMeta: mapperMeta("omni", "uid-connection")}).Build()

	return NewMapper(api)
}
