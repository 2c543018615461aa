package helm

import (
	"slices"

	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/cli-runtime/pkg/resource"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
)

// A chart may have one object as a hook and in its templates: a first Secret that is made before anything else, for example.
// Helm makes it without marks for the hook, and then for the template takes it for somebody else's.

// namedByHook reports whether a hook that this action has run names an object.
func (c *Client) namedByHook(storage *resumable, info *resource.Info) bool {
	record := storage.read[storage.makes]
	if record == nil || record.Info == nil {
		return false
	}

	return slices.ContainsFunc(record.Hooks, func(hook *releasev1.Hook) bool {
		// A rollback copies the times at which hooks ran before.
		if hook == nil || hook.LastRun.StartedAt.IsZero() || hook.LastRun.StartedAt.Before(record.Info.LastDeployed) {
			return false
		}

		names, err := c.namesIn(hook.Manifest)

		return err == nil && slices.ContainsFunc(names, func(one drift.Object) bool { return isNamed(info, one) })
	})
}
