package helm

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
)

// A chart may have one object as a hook and in its templates: a first Secret that is made before anything else, for example.
// Helm makes it without marks for the hook, and then for the template takes it for somebody else's.

// ranHooks are those hooks of a revision that its action has run. A rollback copies the times at which they ran before.
func ranHooks(record *releasev1.Release) []*releasev1.Hook {
	return slices.DeleteFunc(slices.Clone(record.Hooks), func(hook *releasev1.Hook) bool {
		return hook == nil || record.Info == nil || hook.LastRun.StartedAt.IsZero() || hook.LastRun.StartedAt.Before(record.Info.LastDeployed)
	})
}

// namedByHook reports whether a hook that this action has run names an object.
func (c *Client) namedByHook(storage *resumable, info *resource.Info) bool {
	record := storage.read[storage.makes]
	if record == nil {
		return false
	}

	return slices.ContainsFunc(ranHooks(record), func(hook *releasev1.Hook) bool {
		names, err := c.namesIn(hook.Manifest)

		return err == nil && slices.ContainsFunc(names, func(one drift.Object) bool { return isNamed(info, one) })
	})
}

// noteHooked notes those objects of an attempt's manifest that its hooks have made, too. Objects are those of the manifest.
func (c *Client) noteHooked(x *execution, record *releasev1.Release, began time.Time, objects []*unstructured.Unstructured) {
	for _, hook := range ranHooks(record) {
		names, err := c.namesIn(hook.Manifest)
		if err != nil {
			continue // such a hook has made nothing
		}

		for _, one := range names {
			if !slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool { return c.named(object) == one }) {
				continue
			}

			if x.hooked == nil {
				x.hooked = map[drift.Object]time.Time{}
			}

			x.hooked[one] = began
		}
	}
}

// markHooked puts the marks of the release on what hooks of attempts have left of its manifest's objects, so that Helm takes it for
// the release's: an attempt that ended between its hooks and its update has not marked it. What is older than the attempt, or was
// not written by a release, was not made by it. It is called when the action may change something.
func (c *Client) markHooked(x *execution) error {
	if len(x.hooked) == 0 {
		return nil
	}

	found, err := locate(x, x.hooked)
	if err != nil {
		return err
	}

	for _, info := range found {
		live, there, err := x.guard.Live(info)
		if err != nil {
			return fmt.Errorf("whose %s is cannot be told: %w", drift.Identify(info), err)
		}

		object := unstructured.Unstructured{Object: live}
		if !there || object.GetCreationTimestamp().Time.Before(began(x.hooked, info)) {
			continue
		}

		// Somebody may have removed what the hook made, and made another.
		if ours, other := c.release().Whose(live); ours || other != "" || !c.release().Wrote(live) {
			continue
		}

		if err := c.mark(info, object.GetUID()); err != nil {
			return fmt.Errorf("put the marks of the release on %s, which a hook has made: %w", drift.Identify(info), err)
		}
	}

	return nil
}

// mark writes the marks and nothing else. An apply would take away what the hook has applied.
func (c *Client) mark(info *resource.Info, uid types.UID) error {
	labels, annotations := c.release().Marks()

	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid, "labels": labels, "annotations": annotations}})
	if err != nil {
		return err
	}

	_, err = resource.NewHelper(info.Client, info.Mapping).WithFieldManager(FieldManager).
		Patch(info.Namespace, info.Name, types.MergePatchType, data, nil)

	return err
}
