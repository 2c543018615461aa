package migrate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What a run has changed is told by its field manager, and what it was before only by the run's backup. Without that
// file a later run would save, plan and move what the earlier one has made as if its user had written it, and undo
// would restore nothing.

// refuseEarlier refuses an object whose policy was set by an earlier run, if the backup does not have the object.
func (c *Converted) refuseEarlier(old *unstructured.Unstructured, b *backup) {
	if !madeHarmless(old) || b.has(old) {
		return
	}

	c.refuse(strings.Join(harmlessPath(old.GetKind()), "."), "an earlier run changed this: give its backup file (`migrate run --backup`, `migrate undo --backup`). "+
		"If that is lost, scale the old operator up, which puts its finalizers back, and write the policy that you want, "+
		"first another one if it is the one that is there")
	c.Object = nil
}

// stoppedEarlier returns a problem for each Deployment that an earlier run has stopped and the backup does not have.
func stoppedEarlier(s *state, b *backup) []string {
	if len(s.Definitions) == 0 {
		return nil // nothing is left to move, or the run is past all this
	}

	var problems []string

	for i := range s.Deployments {
		at := &s.Deployments[i]
		if replicas(at) > 0 || !onlyWeWrote(at, "spec", "replicas") || b != nil && sameName(b.Deployments, at) != nil {
			continue
		}

		problems = append(problems, fmt.Sprintf("%s: an earlier run changed this (spec.replicas): give its backup file. "+
			"If that is lost, scale it to what it had", idOf(at)))
	}

	return problems
}

// has reports whether the backup has this very object.
func (b *backup) has(obj *unstructured.Unstructured) bool {
	if b == nil {
		return false
	}

	saved := sameName(b.Objects, obj)

	return saved != nil && saved.GetUID() == obj.GetUID()
}
