package index

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// found is what an object is found by in an index of its kind.
func found(t *testing.T, object client.Object, name string) []string {
	t.Helper()

	for _, i := range All() {
		if i.Name == name && sameKind(i.Object, object) {
			return i.Values(object)
		}
	}

	t.Fatalf("no index %s of %T", name, object)

	return nil
}

func sameKind(a, b client.Object) bool {
	switch a.(type) {
	case *v1alpha1.OmniCluster:
		_, same := b.(*v1alpha1.OmniCluster)

		return same
	case *v1alpha1.OmniConnection:
		_, same := b.(*v1alpha1.OmniConnection)

		return same
	case *v1alpha1.OmniControlPlane:
		_, same := b.(*v1alpha1.OmniControlPlane)

		return same
	case *v1alpha1.OmniWorkers:
		_, same := b.(*v1alpha1.OmniWorkers)

		return same
	case *v1alpha1.OmniMachine:
		_, same := b.(*v1alpha1.OmniMachine)

		return same
	default:
		_, same := b.(*metav1.PartialObjectMetadata)

		return same
	}
}

func fromSecret(name, key string) v1alpha1.Patch {
	return v1alpha1.Patch{ValueFrom: &v1alpha1.ValueSource{SecretKeyRef: &v1alpha1.KeyReference{Name: name, Key: key}}}
}

func fromConfigMap(name string) *v1alpha1.ValueSource {
	return &v1alpha1.ValueSource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: name, Key: "k"}}
}

func TestIndexes(t *testing.T) {
	ref := v1alpha1.LocalObjectReference{Name: "demo"}
	cluster := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Name: "named"}}
	cluster.Spec.ConnectionRef.Name = "main"
	cluster.Spec.Patches = []v1alpha1.Patch{fromSecret("s2", "a"), fromSecret("s1", "a"), fromSecret("s2", "b"), {Name: "inline"}}
	cluster.Spec.Kubernetes.Manifests = []v1alpha1.Manifest{{ValueFrom: fromConfigMap("m")}, {Name: "inline"}}

	claimed := cluster.DeepCopy()
	claimed.Spec.ClusterName = "real"

	connection := &v1alpha1.OmniConnection{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}
	connection.Spec.Auth.ServiceAccountSecretRef.Name = "key"

	controlPlane := &v1alpha1.OmniControlPlane{Spec: v1alpha1.OmniControlPlaneSpec{ClusterRef: ref}}
	workers := &v1alpha1.OmniWorkers{Spec: v1alpha1.OmniWorkersSpec{ClusterRef: ref}}
	machine := &v1alpha1.OmniMachine{Spec: v1alpha1.OmniMachineSpec{ClusterRef: ref}}

	for _, patches := range []*[]v1alpha1.Patch{&controlPlane.Spec.Patches, &workers.Spec.Patches, &machine.Spec.Patches} {
		*patches = []v1alpha1.Patch{fromSecret("s", "k"), {ValueFrom: fromConfigMap("m")}}
	}

	for name, test := range map[string]struct {
		object client.Object
		index  string
		want   []string
	}{
		"connection of a cluster":     {cluster, ByConnection, []string{"main"}},
		"cluster in Omni":             {cluster, ByRemote, []string{"main/named"}},
		"cluster in Omni, with name":  {claimed, ByRemote, []string{"main/real"}},
		"Secrets of a cluster":        {cluster, ByValueSecret, []string{"s1", "s2"}},
		"ConfigMaps of a cluster":     {cluster, ByValueConfigMap, []string{"m"}},
		"Secret of a connection":      {connection, ByKeySecret, []string{"key"}},
		"UID of a connection":         {connection, ByUID, []string{"uid"}},
		"cluster of a control plane":  {controlPlane, ByCluster, []string{"demo"}},
		"Secrets of a control plane":  {controlPlane, ByValueSecret, []string{"s"}},
		"ConfigMaps of control plane": {controlPlane, ByValueConfigMap, []string{"m"}},
		"cluster of workers":          {workers, ByCluster, []string{"demo"}},
		"Secrets of workers":          {workers, ByValueSecret, []string{"s"}},
		"cluster of a machine":        {machine, ByCluster, []string{"demo"}},
		"ConfigMaps of a machine":     {machine, ByValueConfigMap, []string{"m"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, found(t, test.object, test.index)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Two indexes with one name on one kind make a cache refuse to start.
func TestNoIndexTwice(t *testing.T) {
	all := All()
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.Name == b.Name && sameKind(a.Object, b.Object) {
				t.Errorf("index %s of %T exists twice", a.Name, a.Object)
			}
		}
	}
}

func TestAnIndexOfAnotherKindFindsNothing(t *testing.T) {
	for _, i := range All() {
		if i.Name == ByConnection {
			if got := i.Values(&v1alpha1.OmniMachine{}); got != nil {
				t.Error(got)
			}
		}
	}
}
