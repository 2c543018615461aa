package hubs

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func connection(previous string) *v1alpha1.OmniConnection {
	made := &v1alpha1.OmniConnection{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "omni"}}
	if previous != "" {
		made.Annotations = map[string]string{v1alpha1.AnnotationPreviousHub: previous}
	}

	return made
}

func TestOurs(t *testing.T) {
	for name, test := range map[string]struct {
		annotation, mark string
		ours, previous   bool
	}{
		"our own mark":                       {"", "hub-1", true, false},
		"a mark of before":                   {"", "", true, false},
		"another hub's mark":                 {"", "hub-2", false, false},
		"the previous hub's mark":            {"hub-2", "hub-2", true, true},
		"a third hub's mark":                 {"hub-2", "hub-3", false, false},
		"our own mark, with a previous hub":  {"hub-2", "hub-1", true, false},
		"a mark of before, previous hub":     {"hub-2", "", true, false},
		"the annotation names us":            {"hub-1", "hub-1", true, false},
		"the annotation names us, another's": {"hub-1", "hub-2", false, false},
	} {
		hubs := Of("hub-1", connection(test.annotation))
		if hubs.Ours(test.mark) != test.ours || hubs.IsPrevious(test.mark) != test.previous {
			t.Errorf("%s: %+v", name, hubs)
		}
	}
}

func TestNobodySaysAnything(t *testing.T) {
	if got := Of("hub-1", nil); got != (Hubs{Own: "hub-1"}) {
		t.Errorf("%+v", got)
	}
}

func TestTheConnectionOfAClusterSaysIt(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	cluster := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo"}}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(connection("hub-2")).Build()

	for name, want := range map[string]Hubs{"omni": {Own: "hub-1", Previous: "hub-2"}, "absent": {Own: "hub-1"}} {
		cluster.Spec.ConnectionRef.Name = name

		if got, err := OfCluster(t.Context(), reader, "hub-1", cluster); got != want || err != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
