package kittest

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistrytest "k8s.io/apiserver/pkg/registry/generic/testing"
	"k8s.io/apiserver/pkg/registry/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
)

// testLibrary runs the suite that every store in Kubernetes has to pass.
func (s *suite[T]) testLibrary(t *testing.T) {
	tests := map[string]func(*genericregistrytest.Tester){
		"create": func(tester *genericregistrytest.Tester) { tester.TestCreate(s.unnamed(), s.Invalid()) },
		"update": func(tester *genericregistrytest.Tester) {
			tester.TestUpdate(s.unnamed(), changed(s.Change), changed(s.BadChange))
		},
		"delete": func(tester *genericregistrytest.Tester) {
			tester.ReturnDeletedObject().TestDelete(s.valid("foo"))
		},
		"get":  func(tester *genericregistrytest.Tester) { tester.TestGet(s.unnamed()) },
		"list": func(tester *genericregistrytest.Tester) { tester.TestList(s.unnamed()) },
		"watch": func(tester *genericregistrytest.Tester) {
			named := s.valid("foo")
			named.SetNamespace(tester.TestNamespace())
			named.SetLabels(map[string]string{"tier": "one"})
			tester.TestWatch(named,
				[]labels.Set{{"tier": "one"}}, []labels.Set{{"tier": "two"}},
				[]fields.Set{{"metadata.name": "foo"}}, []fields.Set{{"metadata.name": "bar"}})
		},
	}
	for name, run := range tests {
		t.Run(name, func(t *testing.T) {
			store := s.plain(t).Main.Store
			store.CreateStrategy = standingClock{store.CreateStrategy}

			run(genericregistrytest.New(t, store))
		})
	}
}

// standingClock gives the first conditions of all objects the same time. The suite compares the results of a dry run
// and of a creation, and a second may pass between them; the suite itself ignores only the difference in the creation
// time.
type standingClock struct{ rest.RESTCreateStrategy }

// PrepareForCreate implements rest.RESTCreateStrategy.
func (c standingClock) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	c.RESTCreateStrategy.PrepareForCreate(ctx, obj)

	conditions := obj.(kit.Object).GetReconcileStatus().Conditions
	for i := range conditions {
		conditions[i].LastTransitionTime = metav1.Unix(1, 0)
	}
}

// unnamed is a valid object that the library's suite names itself.
func (s *suite[T]) unnamed() runtime.Object {
	obj := s.Valid()
	obj.SetName("")
	obj.SetNamespace("")
	obj.SetGenerateName("foo")

	return obj
}

func changed[T metav1.Object](change func(T)) genericregistrytest.UpdateFunc {
	return func(obj runtime.Object) runtime.Object {
		change(obj.(T))

		return obj
	}
}
