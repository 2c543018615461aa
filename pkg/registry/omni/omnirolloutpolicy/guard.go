package omnirolloutpolicy

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// Clusters lists the OmniClusters in the namespace of the request.
type Clusters interface {
	List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error)
}

// confirmDeletion refuses to delete a policy that has changes of clusters wait or go on, unless its annotation
// confirm-deletion has its name. It asks the clusters as well: the number in the policy's status follows them by a
// second or more, in which a deletion would let all of them begin.
func confirmDeletion(ctx context.Context, o *v1alpha1.OmniRolloutPolicy, clusters Clusters) error {
	if o.Annotations[v1alpha1.AnnotationConfirmDeletion] == o.Name {
		return nil
	}

	// The error is returned unwrapped: a wrapped "try again later" would become an internal server error.
	held, err := countHeld(ctx, o.Name, clusters)
	if err != nil {
		return err
	}

	if held = max(held, int(o.Status.Held)); held == 0 {
		return nil
	}

	return apierrors.NewForbidden(v1alpha1.Resource("omnirolloutpolicies"), o.Name, fmt.Errorf(
		"it holds changes of %d clusters, or has them at work; without it, all that wait would begin at once: annotate it with %s=%s first "+
			"if that is meant, or change its selector, which leaves them held", held, v1alpha1.AnnotationConfirmDeletion, o.Name))
}

// countHeld counts the clusters whose changes wait or are at work by a policy. A cluster that makes no changes would
// begin with nothing.
func countHeld(ctx context.Context, policy string, clusters Clusters) (int, error) {
	found, err := clusters.List(ctx, &metainternalversion.ListOptions{})
	if err != nil {
		return 0, err
	}

	list, ok := found.(*v1alpha1.OmniClusterList)
	if !ok {
		return 0, apierrors.NewInternalError(fmt.Errorf("read %T for the clusters of a policy", found))
	}

	held := 0

	for i := range list.Items {
		status := list.Items[i].Status.Rollout
		if status == nil || status.Policy != policy || rollout.IsPaused(&list.Items[i]) {
			continue
		}

		// Listed without a state are changes that were held, and cannot be made now for another reason.
		if status.State == v1alpha1.RolloutHeld || status.State == v1alpha1.RolloutAdmitted || len(status.Changes) > 0 {
			held++
		}
	}

	return held, nil
}
