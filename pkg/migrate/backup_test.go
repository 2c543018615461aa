package migrate

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
