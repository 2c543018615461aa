package migrate

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// olderGroup is the API group of the first releases of the operator with CRDs. Their objects are not moved. A hub can have
// them beside those of our group, left over from an upgrade, or with an operator of their own that acts on the same clusters.
const olderGroup = "omni.texas-hpc.org"

// lookOlder reads the objects of the older group.
func (h *hub) lookOlder(ctx context.Context, s *state) error {
	for i := range s.OlderDefinitions {
		plural, _, _ := unstructured.NestedString(s.OlderDefinitions[i].Object, "spec", "names", "plural")

		found, err := h.list(ctx, schema.GroupVersionResource{Group: olderGroup, Version: "v1alpha1", Resource: plural}, "", "")
		if err != nil {
			return err
		}

		s.OlderObjects = append(s.OlderObjects, found...)
	}

	return nil
}

// olderProblem says what to do about objects of the older group; empty if there are none.
func olderProblem(s *state) string {
	if len(s.OlderObjects) == 0 {
		return ""
	}

	const named = 5

	var names []string
	for i := range s.OlderObjects {
		names = append(names, idOf(&s.OlderObjects[i]))
	}

	return fmt.Sprintf("%d objects of %s are there (%s): they are an older release's of the operator with CRDs, which may act on the same clusters, and are not moved. "+
		"Take steps 1 to 6 of \"By hand\" in docs/how-to/migrate.md with that group and its finalizer %s/finalizer, before you apply anything of this operator",
		len(s.OlderObjects), olderGroup, words.Few(names, named, ", "), olderGroup)
}

// olderNote tells of definitions of the older group without objects; empty if there are none.
func olderNote(s *state) string {
	if len(s.OlderDefinitions) == 0 || len(s.OlderObjects) > 0 {
		return ""
	}

	var names []string
	for i := range s.OlderDefinitions {
		names = append(names, s.OlderDefinitions[i].GetName())
	}

	return fmt.Sprintf("the definitions %s are an older release's of the operator with CRDs, and have no objects: delete them, so that nobody makes any", strings.Join(names, ", "))
}
