package migrate

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// What was deleted since the backup stays in it only if nobody can have done what its deletion asked for.
func TestMergeOfWhatIsGone(t *testing.T) {
	object := func(kind, name string) unstructured.Unstructured {
		made := unstructured.Unstructured{}
		made.SetKind(kind)
		made.SetName(name)

		return made
	}
	deployment := func(replicas int64) []unstructured.Unstructured {
		made := object("Deployment", "operator")
		if err := unstructured.SetNestedField(made.Object, replicas, "spec", "replicas"); err != nil {
			t.Fatal(err)
		}

		return []unstructured.Unstructured{made}
	}

	for name, test := range map[string]struct {
		deployments []unstructured.Unstructured
		want        int
	}{
		"it is stopped":       {deployment(0), 2},
		"it runs":             {deployment(1), 1},
		"nobody knows of one": {nil, 2},
	} {
		before := &backup{
			Objects:  []unstructured.Unstructured{object("OmniWorkers", "here"), object("OmniWorkers", "gone")},
			Imported: []string{"one"}, Deployments: deployment(1),
		}

		merged := before.merge(&state{Deployments: test.deployments, Objects: before.Objects[:1:1]}, time.Now())
		if len(merged.Objects) != test.want || len(merged.Imported) != 1 {
			t.Errorf("%s: %d objects, imported %v", name, len(merged.Objects), merged.Imported)
		}
	}
}

// A run that was killed between the deletions of two definitions saves what users wrote of the objects that are left, and
// none of these goes with another content than the saved one.
func TestEditsBetweenTwoDeletions(t *testing.T) {
	workers := func(name string, size int64, change ...func(*unstructured.Unstructured)) unstructured.Unstructured {
		made := unstructured.Unstructured{Object: map[string]any{"kind": "OmniWorkers", "spec": map[string]any{"size": size}}}
		made.SetName(name)
		made.SetUID(types.UID(name))
		made.SetGeneration(size)

		for _, one := range change {
			one(&made)
		}

		return made
	}
	held := func(obj *unstructured.Unstructured) { obj.SetFinalizers([]string{theirFinalizer}) }
	going := func(obj *unstructured.Unstructured) { obj.SetDeletionTimestamp(&metav1.Time{Time: time.Now()}) }
	labelled := func(obj *unstructured.Unstructured) { obj.SetLabels(map[string]string{"team": "new"}) }

	definitions := make([]unstructured.Unstructured, 2)
	definitions[0].SetName("omnimachines")
	definitions[1].SetName("omniworkers")

	m := &Migration{backup: &backup{
		Definitions: definitions,
		Objects:     []unstructured.Unstructured{workers("same", 1, held), workers("edited", 1, held), workers("labelled", 1), workers("going", 1, held)},
	}}
	s := &state{
		Definitions: definitions[1:],
		Objects:     []unstructured.Unstructured{workers("same", 1), workers("edited", 5), workers("labelled", 1, labelled), workers("going", 7, going)},
	}

	for i, refused := range []bool{false, true, true} {
		if err := m.isSavedAsItIs(&s.Objects[i]); (err != nil) != refused {
			t.Errorf("%s: %v, refused is to be %v", idOf(&s.Objects[i]), err, refused)
		}
	}

	if save := steps()[1]; !m.backup.irreversible(s) || !save.needs(s, m.backup) {
		t.Errorf("nothing would be saved: %s", save.title)
	}

	m.backup = m.backup.merge(s, time.Now())

	for i := range s.Objects[:3] {
		if err := m.isSavedAsItIs(&s.Objects[i]); err != nil {
			t.Errorf("not saved: %v", err)
		}
	}

	if saved := sameName(m.backup.Objects, &s.Objects[3]); saved.GetDeletionTimestamp() != nil || len(saved.GetFinalizers()) != 1 {
		t.Errorf("saved as it went: %v", saved)
	}

	if !m.backup.irreversible(s) {
		t.Error("the backup forgot that definitions are gone")
	}
}
