package kittest

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
	"omni.texashpc.com/omni-cluster-operator/test/etcdtest"
)

// Case is what the suite needs to know about a kind.
type Case[T kit.Object] struct {
	// Descriptor is the descriptor under test.
	Descriptor *kit.Descriptor[T]
	// Valid makes an object that is accepted. The suite names it and puts it into its namespace.
	Valid func() T
	// Invalid makes an object that is refused.
	Invalid func() T
	// Change makes an accepted change of the spec.
	Change func(T)
	// BadChange makes a change that is refused, preferably of an immutable field.
	BadChange func(T)
	// EmptyList sets a list of the spec that is unset to an empty list; nil if the kind has none.
	EmptyList func(T)
	// Rows are the printed columns of some objects.
	Rows []Row[T]
}

// Row is one printed object.
type Row[T kit.Object] struct {
	// Name of the test.
	Name string
	// Change makes the object from a valid one named "foo".
	Change func(T)
	// Cells are those between NAME and AGE, wide ones included.
	Cells []any
}

// Run runs the whole suite.
func Run[T kit.Object](t *testing.T, c Case[T]) {
	t.Helper()

	s := &suite[T]{Case: c, etcd: etcdtest.Start(t, t.TempDir())}

	t.Run("library suite", s.testLibrary)
	t.Run("new objects", s.testCreate)
	t.Run("generation", s.testGeneration)
	t.Run("deletion", s.testDeletion)
	t.Run("refused apply", s.testRefusedApply)
	t.Run("status", s.testStatus)
	t.Run("reset fields", s.testResetFields)
	t.Run("selectors", s.testSelectors)
	t.Run("names", s.testNames)
	t.Run("table", s.testTable)
	t.Run("scale", s.testScale)
	t.Run("too large", s.testTooLarge)
}

// valid is a valid object in the suite's namespace.
func (c Case[T]) valid(name string) T {
	obj := c.Valid()
	obj.SetName(name)
	obj.SetNamespace(metav1.NamespaceDefault)

	return obj
}
