package omnisim

import (
	"context"
	"fmt"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// The phases of a manifest and of its group.
const (
	manifestPending  = specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus_PENDING
	manifestApplied  = specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus_APPLIED
	manifestDeleting = specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus_DELETING

	groupApplied = specs.ClusterKubernetesManifestsStatusSpec_GroupStatus_APPLIED
)

// problems is what keeps the manifests of a cluster from being applied.
type problems struct {
	refused string              // the error for everything new; empty if there is none
	unknown map[string]struct{} // kinds that the cluster does not have
}

// RefuseManifests makes the Kubernetes API of a cluster refuse what Omni applies, with an error, until the text is empty: new
// manifests stay pending, and what the cluster has stays as it was.
func (s *Server) RefuseManifests(cluster, text string) {
	s.engine.call(func(context.Context) {
		s.engine.problemsOf(cluster).refused = text
		s.engine.waiting[cluster] = struct{}{}
	})
}

// SetKindUnknown makes a cluster not know a kind, as if its CustomResourceDefinition were missing: new manifests of it stay
// pending, and Omni has no error.
func (s *Server) SetKindUnknown(cluster, kind string, unknown bool) {
	s.engine.call(func(context.Context) {
		kinds := s.engine.problemsOf(cluster).unknown
		if unknown {
			kinds[kind] = struct{}{}
		} else {
			delete(kinds, kind)
		}

		s.engine.waiting[cluster] = struct{}{}
	})
}

func (e *engine) problemsOf(cluster string) *problems {
	if e.problems[cluster] == nil {
		e.problems[cluster] = &problems{unknown: map[string]struct{}{}}
	}

	return e.problems[cluster]
}

// reconcileManifests writes the status of a cluster's manifests: first what is new is pending, and what goes is being deleted; a
// step later, if Kubernetes answers, it is done. Omni does nothing while it cannot reach the cluster.
func (e *engine) reconcileManifests(ctx context.Context, view *clusterView) error {
	name := view.name()

	groups, err := e.manifestGroups(ctx, name)
	if err != nil {
		return err
	}

	before, err := find[*omni.ClusterKubernetesManifestsStatus](ctx, e.state, omni.NewClusterKubernetesManifestsStatus(name).Metadata())
	if err != nil || before == nil && len(groups) == 0 {
		return err
	}

	_, connected, _ := e.controlPlane(ctx, view)
	if _, healthy := e.balance(ctx, view); !connected || !healthy {
		return nil
	}

	wanted, digest, err := manifestsOf(groups)
	if err != nil {
		return err
	}

	applies := e.answers(ctx, view) && e.elapsed(name, "manifests/"+name, digest, 1)

	return put(ctx, e.state, manifestsController, omni.NewClusterKubernetesManifestsStatus(name), func(status *omni.ClusterKubernetesManifestsStatus) {
		spec := status.TypedSpec().Value
		markManifests(spec, wanted)

		if applies {
			e.problemsOf(name).apply(spec)
		}

		spec.UpdateGroups(wanted.specs)
	})
}

// manifestGroups returns the groups of a cluster that are not being torn down, by ID.
func (e *engine) manifestGroups(ctx context.Context, cluster string) ([]*omni.KubernetesManifestGroup, error) {
	all, err := listOf(ctx, e.state, omni.NewKubernetesManifestGroup(""), cluster)
	if err != nil {
		return nil, err
	}

	groups := all[:0]

	for _, group := range all {
		if group.Metadata().Phase() == resource.PhaseRunning {
			groups = append(groups, group)
		}
	}

	return groups, nil
}

// wantedManifests are the groups of a cluster and their objects by ID, both by the ID of the group.
type wantedManifests struct {
	specs   map[string]*specs.KubernetesManifestGroupSpec
	objects map[string]map[string]*unstructured.Unstructured
}

// manifestsOf reads the groups. The digest changes with every change of one of them.
func manifestsOf(groups []*omni.KubernetesManifestGroup) (wantedManifests, string, error) {
	wanted := wantedManifests{
		specs: map[string]*specs.KubernetesManifestGroupSpec{}, objects: map[string]map[string]*unstructured.Unstructured{},
	}

	var digest strings.Builder

	for _, group := range groups {
		id := group.Metadata().ID()

		objects, err := group.TypedSpec().Value.GetManifests()
		if err != nil {
			return wantedManifests{}, "", fmt.Errorf("read the manifests of group %q: %w", id, err)
		}

		wanted.specs[id], wanted.objects[id] = group.TypedSpec().Value, map[string]*unstructured.Unstructured{}

		for _, object := range objects {
			kind := object.GroupVersionKind()
			wanted.objects[id][strings.Join([]string{object.GetNamespace(), object.GetName(), kind.Group, kind.Kind}, "_")] = object
		}

		fmt.Fprintln(&digest, id, group.Metadata().Version())
	}

	return wanted, digest.String(), nil
}

// markManifests adds what is new as pending, and marks what goes. A group that is applied once is done after that.
func markManifests(spec *specs.ClusterKubernetesManifestsStatusSpec, wanted wantedManifests) {
	if spec.Groups == nil {
		spec.Groups = map[string]*specs.ClusterKubernetesManifestsStatusSpec_GroupStatus{}
	}

	for id := range wanted.objects {
		if spec.Groups[id] == nil {
			spec.Groups[id] = &specs.ClusterKubernetesManifestsStatusSpec_GroupStatus{
				Manifests: map[string]*specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus{},
			}
		}
	}

	for id, group := range spec.Groups {
		if group.Mode == specs.KubernetesManifestGroupSpec_ONE_TIME && group.Phase == groupApplied {
			continue
		}

		for manifest, status := range group.Manifests {
			if _, stays := wanted.objects[id][manifest]; !stays {
				status.Phase = manifestDeleting
			}
		}

		for manifest, object := range wanted.objects[id] {
			if status := group.Manifests[manifest]; status == nil || status.Phase == manifestDeleting {
				group.Manifests[manifest] = pending(object)
			}
		}
	}
}

func pending(object *unstructured.Unstructured) *specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus {
	return &specs.ClusterKubernetesManifestsStatusSpec_ManifestStatus{
		Phase: manifestPending, Kind: object.GetKind(), Group: object.GroupVersionKind().Group, Name: object.GetName(), Namespace: object.GetNamespace(),
	}
}

// apply has the cluster take what is pending, and lose what goes, unless something is in the way.
func (p *problems) apply(spec *specs.ClusterKubernetesManifestsStatusSpec) {
	spec.LastError = p.refused
	if p.refused != "" {
		return
	}

	for id, group := range spec.Groups {
		for manifest, status := range group.Manifests {
			_, unknown := p.unknown[status.Kind]

			switch {
			case status.Phase == manifestDeleting:
				spec.DeleteManifestStatus(id, manifest)
			case !unknown:
				status.Phase = manifestApplied
			}
		}
	}
}
