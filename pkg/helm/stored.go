package helm

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
)

// What an action needs to know of manifests in Helm's records.

// objectsOf are the objects of a stored manifest, in its order.
func objectsOf(stored string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured

	documents := releaseutil.SplitManifests(stored)

	names := slices.Collect(maps.Keys(documents))
	sort.Sort(releaseutil.BySplitManifestsOrder(names))

	for _, name := range names {
		some, err := drift.ParseObjects([]byte(documents[name]))
		if err != nil {
			return nil, err
		}

		objects = append(objects, some...)
	}

	return objects, nil
}

// named tells objects of manifests apart: by no version, and by the namespace in
// which they land, if they have one.
func (c *Client) named(object *unstructured.Unstructured) drift.Object {
	kind, namespace := object.GroupVersionKind(), object.GetNamespace()
	if namespace == "" {
		namespace = c.target.Namespace
	}

	return drift.Object{Group: kind.Group, Kind: kind.Kind, Namespace: namespace, Name: object.GetName()}
}

// namesIn are the names of the objects of a stored manifest.
func (c *Client) namesIn(stored string) ([]drift.Object, error) {
	objects, err := objectsOf(stored)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of the release: %w", err)
	}

	names := make([]drift.Object, 0, len(objects))
	for _, object := range objects {
		names = append(names, c.named(object))
	}

	return names, nil
}

// isNamed reports whether an object of the cluster's kinds is the one that a manifest names. One outside namespaces is it
// in whatever namespace a manifest puts it.
func isNamed(info *resource.Info, named drift.Object) bool {
	object := drift.Identify(info)

	return object.Group == named.Group && object.Kind == named.Kind && object.Name == named.Name &&
		(object.Namespace == "" || object.Namespace == named.Namespace)
}

// build finds the objects of a stored manifest in the cluster's kinds.
func build(x *execution, stored string) (kube.ResourceList, error) {
	objects, err := x.config.KubeClient.Build(strings.NewReader(stored), false)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of the release: %w", err)
	}

	return objects, nil
}

// locate finds objects in the cluster's kinds. Of a kind that it does not serve any more, there are none.
func locate(x *execution, objects map[drift.Object]time.Time) (kube.ResourceList, error) {
	mapper, err := x.config.RESTClientGetter.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("look at the kinds of the cluster: %w", err)
	}

	var names strings.Builder

	// In one order: people are told of them.
	for _, object := range slices.SortedFunc(maps.Keys(objects), func(a, b drift.Object) int { return strings.Compare(a.String(), b.String()) }) {
		if object.Name == "" { // a generated name has no counterpart
			continue
		}

		kind := schema.GroupKind{Group: object.Group, Kind: object.Kind}

		mapping, err := mapper.RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			if err := x.guard.MustBeUnserved(kind); err != nil {
				return nil, fmt.Errorf("no object was changed, because failed revisions of the release name %s: %w", object, err)
			}

			continue
		}

		if err != nil {
			return nil, fmt.Errorf("look at the kinds of the cluster: %w", err)
		}

		named := unstructured.Unstructured{}
		named.SetGroupVersionKind(mapping.GroupVersionKind)
		named.SetName(object.Name)
		named.SetNamespace(object.Namespace)

		text, err := named.MarshalJSON()
		if err != nil {
			return nil, err
		}

		names.WriteString("---\n" + string(text))
	}

	return build(x, names.String())
}

// joined is a manifest and those objects of an older one that it does not name.
func (c *Client) joined(manifest, older string) (string, error) {
	known := map[drift.Object]bool{}

	objects, err := objectsOf(manifest)
	if err != nil {
		return "", err
	}

	for _, object := range objects {
		known[c.named(object)] = true
	}

	if objects, err = objectsOf(older); err != nil {
		return "", err
	}

	for _, object := range objects {
		if known[c.named(object)] {
			continue
		}

		text, err := object.MarshalJSON()
		if err != nil {
			return "", err
		}

		manifest += "\n---\n" + string(text)
	}

	return manifest, nil
}

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
