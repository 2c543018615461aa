package omnihelmrelease

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// waitsFor returns the first dependency that is not done; empty if all are. Dependencies count only before an install
// or an upgrade: a deployed release does not become unready because another release has a problem.
func (r *reconciler) waitsFor(ctx context.Context, release *v1alpha1.OmniHelmRelease) (string, error) {
	for _, ref := range release.Spec.DependsOn {
		dependency, err := r.sibling(ctx, release.Namespace, ref.Name)
		if err != nil {
			return "", err
		}

		switch {
		case dependency == nil:
			return fmt.Sprintf("OmniHelmRelease %q (spec.dependsOn) does not exist", ref.Name), nil
		case !done(dependency):
			return fmt.Sprintf("OmniHelmRelease %q (spec.dependsOn) is not Ready", ref.Name), nil
		}
	}

	return "", nil
}

// done reports whether a release is Ready with its current generation.
func done(release *v1alpha1.OmniHelmRelease) bool {
	return release.DeletionTimestamp.IsZero() && release.Status.ObservedGeneration == release.Generation &&
		apimeta.IsStatusConditionTrue(release.Status.Conditions, v1alpha1.ConditionReady)
}

// inCycle reports whether a release's status says that it waits for itself. When a cycle is cut, its members learn it from
// one another: a change of spec.dependsOn is told to the direct dependents only.
func inCycle(release *v1alpha1.OmniHelmRelease) bool {
	stalled := apimeta.FindStatusCondition(release.Status.Conditions, v1alpha1.ConditionStalled)

	return stalled != nil && stalled.Reason == v1alpha1.ReasonDependencyCycle
}

// sibling returns a release from the cache; nil if it does not exist.
func (r *reconciler) sibling(ctx context.Context, namespace, name string) (*v1alpha1.OmniHelmRelease, error) {
	release := &v1alpha1.OmniHelmRelease{}

	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, release)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // none is no error
	}

	if err != nil {
		return nil, fmt.Errorf("read OmniHelmRelease %q: %w", name, err)
	}

	return release, nil
}

// cycle returns a path from a release over its dependencies back to itself, written as "a -> b -> a"; empty if there is
// none.
func (r *reconciler) cycle(ctx context.Context, release *v1alpha1.OmniHelmRelease) (string, error) {
	seen := map[string]bool{}

	var walk func(path []string, dependencies []v1alpha1.LocalObjectReference) (string, error)

	walk = func(path []string, dependencies []v1alpha1.LocalObjectReference) (string, error) {
		for _, ref := range dependencies {
			if ref.Name == release.Name {
				return strings.Join(append(path, ref.Name), " -> "), nil
			}

			if seen[ref.Name] {
				continue
			}

			seen[ref.Name] = true

			next, err := r.sibling(ctx, release.Namespace, ref.Name)
			if err != nil {
				return "", err
			}

			if next == nil {
				continue
			}

			if found, err := walk(append(path[:len(path):len(path)], ref.Name), next.Spec.DependsOn); err != nil || found != "" {
				return found, err
			}
		}

		return "", nil
	}

	return walk([]string{release.Name}, release.Spec.DependsOn)
}
