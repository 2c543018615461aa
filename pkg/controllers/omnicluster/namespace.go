package omnicluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespaceGoes reports whether the namespace is being deleted, if the plan has changes: its documents go in any order then,
// and ask for nothing. The namespace controller deletes them after the Namespace says so, which is why a plan that was
// made of what is left of them finds it out. unknown says for messages why that is not known.
func (r *reconciler) namespaceGoes(ctx context.Context, s *scope) (goes bool, unknown string, err error) {
	if len(s.plan.Changes) == 0 {
		return false, "", nil
	}

	name, found := s.cluster.Namespace, &corev1.Namespace{}

	switch err := r.live.Get(ctx, client.ObjectKey{Name: name}, found); {
	case apierrors.IsForbidden(err):
		return false, fmt.Sprintf("whether its namespace is being deleted is not known, because omni-controller may not get Namespace %q", name), nil
	case client.IgnoreNotFound(err) != nil:
		return false, "", fmt.Errorf("read Namespace %q: %w", name, err)
	default:
		return err != nil || !found.DeletionTimestamp.IsZero(), "", nil
	}
}
