package kubeclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"

	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
)

// movedGroup is the one group whose kinds live on in other groups, and the objects with them.
const movedGroup = "extensions"

// Build implements kube.Interface. Helm validates what it is to make. Anything else is a manifest of before: it does without
// objects of kinds that the cluster does not serve any more, of which there are none, and takes another version of a kind if
// that of the manifest is gone.
func (c *guardedClient) Build(reader io.Reader, validate bool) (kube.ResourceList, error) {
	if validate || c.guard.LeftOut == nil {
		return c.Client.Build(reader, validate)
	}

	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}

	objects, failed := c.Client.Build(bytes.NewReader(text), validate)
	if failed == nil || string(text) == c.guard.Needed {
		return objects, failed
	}

	named, unreadable := drift.ParseObjects(text)
	if unreadable != nil {
		return objects, failed
	}

	served, unserved, err := c.guard.served(named)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", failed, err)
	}

	if objects, err = c.Client.Build(bytes.NewReader(served), validate); err == nil && len(unserved) > 0 {
		c.guard.LeftOut(unserved)
	}

	return objects, err
}

// served is a manifest of objects, in versions that the cluster serves, and those that are not in it because it serves none of
// their kinds.
func (g *Guard) served(objects []*unstructured.Unstructured) (served []byte, unserved []drift.Object, err error) {
	mapper, err := g.clients.ToRESTMapper()
	if err != nil {
		return nil, nil, err
	}

	for _, object := range objects {
		kind := object.GroupVersionKind()

		missing, err := g.adapt(mapper, object)
		if err != nil {
			return nil, nil, err
		}

		if missing {
			unserved = append(unserved, drift.Object{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()})

			continue
		}

		text, err := object.MarshalJSON()
		if err != nil {
			return nil, nil, err
		}

		served = append(append(served, drift.ManifestSeparator...), text...)
	}

	return served, unserved, nil
}

// adapt gives an object a version that the cluster serves; missing reports that there is none. What else is wrong with the object
// is told when it is built.
func (g *Guard) adapt(mapper meta.RESTMapper, object *unstructured.Unstructured) (missing bool, err error) {
	kind := object.GroupVersionKind()

	if _, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); !meta.IsNoMatchError(err) {
		return false, nil
	}

	if other, err := mapper.RESTMapping(kind.GroupKind()); err == nil {
		object.SetGroupVersionKind(other.GroupVersionKind)

		return false, nil
	} else if !meta.IsNoMatchError(err) {
		return false, nil
	}

	return true, g.MustBeUnserved(kind.GroupKind())
}

// MustBeUnserved is an error unless the cluster serves no version of a kind that its mapper does not know. Then no object of it is
// left: a CRD goes with its objects. A server of an API that does not answer says nothing about them.
func (g *Guard) MustBeUnserved(kind schema.GroupKind) error {
	if g.unserved[kind] {
		return nil
	}

	served, err := g.serves(kind)
	if err != nil {
		return fmt.Errorf("whether the cluster has objects of kind %s cannot be told: %w", kind, err)
	}

	if served {
		return fmt.Errorf("whether the cluster has objects of kind %s cannot be told: it is served, but was not found", kind)
	}

	if g.unserved == nil {
		g.unserved = map[schema.GroupKind]bool{}
	}

	g.unserved[kind] = true

	return nil
}

// Live is an object as the cluster has it, if that is there; one whose name is generated has no counterpart. Of a kind that is not
// served any more an API server answers 404 without a Status, and so does a gateway before it that has no route: the error is
// then that of telling one from the other.
func (g *Guard) Live(info *resource.Info) (live map[string]any, there bool, err error) {
	if info.Name == "" {
		return nil, false, nil
	}

	live, err = drift.Get(info)

	switch {
	case clusteraccess.NotFound(err):
		return nil, false, nil
	case apierrors.IsNotFound(err):
		return nil, false, g.MustBeUnserved(info.Mapping.GroupVersionKind.GroupKind())
	case err != nil:
		return nil, false, err
	default:
		return live, true, nil
	}
}

// serves asks the API server and no cache, group by group: what is told of all groups together is without those whose server
// does not answer.
func (g *Guard) serves(kind schema.GroupKind) (bool, error) {
	if kind.Group == movedGroup {
		return false, errors.New("they are in another group by now")
	}

	config, err := g.clients.ToRESTConfig()
	if err != nil {
		return false, err
	}

	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return false, err
	}

	versions, err := versionsOf(client, kind.Group)
	if err != nil {
		return false, err
	}

	for _, version := range versions {
		known, err := client.ServerResourcesForGroupVersion(version)
		if err != nil {
			return false, err
		}

		if len(known.APIResources) == 0 {
			return false, fmt.Errorf("nothing is said of %s", version)
		}

		if slices.ContainsFunc(known.APIResources, func(one metav1.APIResource) bool { return one.Kind == kind.Kind }) {
			return true, nil
		}
	}

	return false, nil
}

// versionsOf are the versions of a group; none if the cluster does not have it. An API server that has just begun answers 503
// for a group that it does not know yet. The list of all groups, which comes second, has those whose server does not answer.
func versionsOf(client discovery.DiscoveryInterface, group string) ([]string, error) {
	if group == "" {
		return []string{"v1"}, nil
	}

	var (
		found    metav1.APIGroup
		all      metav1.APIGroupList
		versions []string
		ctx      = context.Background() // requests end as the configuration says
	)

	err := client.RESTClient().Get().AbsPath("/apis", group).Do(ctx).Into(&found)
	if err == nil {
		for _, version := range found.Versions {
			versions = append(versions, version.GroupVersion)
		}

		return versions, nil
	}

	if !apierrors.IsNotFound(err) {
		return nil, err
	}

	if err := client.RESTClient().Get().AbsPath("/apis").Do(ctx).Into(&all); err != nil {
		return nil, err
	}

	if len(all.Groups) == 0 || slices.ContainsFunc(all.Groups, func(one metav1.APIGroup) bool { return one.Name == group }) {
		return nil, fmt.Errorf("what is said of group %s is not the same everywhere", group)
	}

	return nil, nil
}
