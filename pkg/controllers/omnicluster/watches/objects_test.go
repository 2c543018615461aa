package watches

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop/looptest"
)

const (
	testNamespace = "team"
	testCluster   = "demo"
)

func meta(name string, uid types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: testNamespace, Name: name, UID: uid, Generation: 1}
}

func newCluster() *v1alpha1.OmniCluster {
	return &v1alpha1.OmniCluster{
		ObjectMeta: meta(testCluster, "uid-demo"),
		Spec:       v1alpha1.OmniClusterSpec{ConnectionRef: v1alpha1.LocalObjectReference{Name: "omni"}},
	}
}

func newWorkers(name string) *v1alpha1.OmniWorkers {
	return &v1alpha1.OmniWorkers{
		ObjectMeta: meta(name, types.UID("uid-"+name)),
		Spec:       v1alpha1.OmniWorkersSpec{ClusterRef: v1alpha1.LocalObjectReference{Name: testCluster}},
	}
}

// newMapper returns a Mapper over an API with these objects, the OmniConnection omni and the indexes.
func newMapper(t *testing.T, objects ...client.Object) *Mapper {
	t.Helper()

	api := looptest.NewAPI(objects...).WithObjects(&v1alpha1.OmniConnection{ObjectMeta: meta("omni", "uid-connection")}).Build()

	return NewMapper(api)
}
