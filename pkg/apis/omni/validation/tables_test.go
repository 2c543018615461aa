package validation

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// row is one case of a rule: a change of a valid object, and the errors that it must cause, each as "path: kind of
// error". No errors mean that the changed object is valid.
type row[T any] struct {
	name   string
	change func(*T)
	want   []string
}

// updateRow is one case of an update: the old and the changed object start as the same valid one.
type updateRow[T any] struct {
	name   string
	old    func(*T)
	change func(*T)
	want   []string
}

// checkRules runs a table against the rules for new objects.
func checkRules[T any](t *testing.T, valid func() *T, validate func(*T) field.ErrorList, rows []row[T]) {
	t.Helper()

	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			obj := valid()
			if r.change != nil {
				r.change(obj)
			}

			checkErrors(t, validate(obj), r.want)
		})
	}
}

// checkUpdates runs a table against the rules for updates.
func checkUpdates[T any](t *testing.T, valid func() *T, validate func(obj, old *T) field.ErrorList, rows []updateRow[T]) {
	t.Helper()

	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			obj, old := valid(), valid()
			if r.old != nil {
				r.old(obj)
				r.old(old)
			}

			if r.change != nil {
				r.change(obj)
			}

			checkErrors(t, validate(obj, old), r.want)
		})
	}
}

func checkErrors(t *testing.T, errs field.ErrorList, want []string) {
	t.Helper()

	var got []string

	for _, err := range errs {
		got = append(got, err.Field+": "+err.Type.String())

		// The error texts about metadata and conditions are those of Kubernetes.
		foreign := strings.HasPrefix(err.Field, "metadata") || strings.HasPrefix(err.Field, "status.conditions")
		if err.Detail == "" && err.Type != field.ErrorTypeDuplicate && !foreign {
			t.Errorf("%s says nothing about the remedy", err.Field)
		}

		if len(err.Error()) > 700 {
			t.Errorf("%s: the error is not bounded: %d bytes", err.Field, len(err.Error()))
		}
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s\nin full: %v", diff, errs.ToAggregate())
	}
}

func checkWarnings(t *testing.T, got, want []string) {
	t.Helper()

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}

	for _, text := range got {
		if len(text) > 120 {
			t.Errorf("%d bytes are too long for a warning: %s", len(text), text)
		}

		if !strings.Contains(text, ": ") {
			t.Errorf("not of the form path: message: %s", text)
		}
	}
}

// meta is the metadata of a stored object.
func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "fleet", UID: "5", ResourceVersion: "7", Generation: 3}
}

// deleting marks an object as being deleted.
func deleting(meta *metav1.ObjectMeta) {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	meta.DeletionTimestamp = &now
	meta.Finalizers = []string{"omni.texashpc.com/finalizer"}
}

func freeForm(text string) *v1alpha1.FreeForm { return &v1alpha1.FreeForm{Raw: []byte(text)} }

// bigObject is a JSON object of exactly this many bytes.
func bigObject(size int) *v1alpha1.FreeForm {
	const frame = `{"a":""}`

	return freeForm(`{"a":"` + strings.Repeat("x", size-len(frame)) + `"}`)
}

// nested is a JSON object of so many levels.
func nested(levels int) *v1alpha1.FreeForm {
	return freeForm(strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels))
}
