package deletionrights

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// defaultRoleBinding is the name that the chart gives to the RoleBinding of a controller of one namespace by default.
const defaultRoleBinding = "omni-controller"

var (
	// errInUse says that the former controller still runs.
	errInUse = errors.New("another controller renews the lease of the namespace")
	// errDeleted says that the copy has been deleted, and has its finalizer still.
	errDeleted = errors.New("the copy is being deleted")
)

// releaser releases what former controllers of one namespace each have kept there.
type releaser struct{ *reconciler }

func newReleaser(r *reconciler) *releaser {
	r.options.RoleBinding = cmp.Or(r.options.RoleBinding, defaultRoleBinding)

	return &releaser{reconciler: r}
}

// Reconcile implements reconcile.Reconciler.
func (r *releaser) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	switch err := r.release(ctx, request.Name); {
	case errors.Is(err, errInUse):
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	case errors.Is(err, errDeleted), apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: shortPause}, nil
	case apierrors.IsForbidden(err):
		if !r.told {
			log.FromContext(ctx).Info("This controller may not release the Lease and the RoleBinding that a former controller of one namespace may have kept there: "+
				"a deletion of such a namespace would wait until somebody does (docs/how-to/install.md, Uninstall)", "reason", err.Error())
		}

		r.told = true

		return reconcile.Result{}, nil
	default:
		return reconcile.Result{}, err
	}
}

// release releases the lease and the copy of the RoleBinding in a namespace, if nobody needs them. The copy is the last: it may be
// what gives the right to write the lease.
func (r *releaser) release(ctx context.Context, namespace string) error {
	if r.options.Namespace != "" { // the former controller may have had the same account
		if needed, err := r.isNeeded(ctx); err != nil || needed {
			return err
		}
	}

	lease := &coordinationv1.Lease{}
	if err := r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: r.options.Lease}, lease); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Lease %q: %w", r.options.Lease, err)
	}

	if namespace != r.options.LeaseNamespace && isRenewed(lease, r.options.Skew.Now().Earliest(time.Now())) {
		return errInUse
	}

	kept := controllerutil.ContainsFinalizer(lease, v1alpha1.InUseFinalizer)
	if err := r.change(ctx, lease, controllerutil.RemoveFinalizer); client.IgnoreNotFound(err) != nil {
		return err
	}

	err := r.releaseCopy(ctx, client.ObjectKey{Namespace: namespace, Name: CopyName(r.options.RoleBinding)})
	if apierrors.IsForbidden(err) && !kept {
		return nil // there is no such right where nothing is ever kept, as in the release's own namespace
	}

	return err
}

// isRenewed reports whether somebody holds the lease and renews it, which happens every few seconds: a minute leaves room for clocks that
// differ. A renewal that is later than now was by a clock that is ahead, or ours was set back.
func isRenewed(lease *coordinationv1.Lease, now time.Time) bool {
	holder, renewed := lease.Spec.HolderIdentity, lease.Spec.RenewTime

	return holder != nil && *holder != "" && renewed != nil && now.Sub(renewed.Time) < lookAgain
}

// releaseCopy deletes a copy of a RoleBinding. The finalizer, by which it is known to be one, goes last.
func (r *releaser) releaseCopy(ctx context.Context, key client.ObjectKey) error {
	binding := &rbacv1.RoleBinding{}
	if err := r.live.Get(ctx, key, binding); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read RoleBinding %q: %w", key.Name, err)
	}

	switch {
	case !controllerutil.ContainsFinalizer(binding, v1alpha1.InUseFinalizer):
		return nil
	case !binding.DeletionTimestamp.IsZero():
		return client.IgnoreNotFound(r.change(ctx, binding, controllerutil.RemoveFinalizer))
	}

	log.FromContext(ctx).Info("Deleting the RoleBinding that a former controller kept for a deletion of the namespace", "namespace", key.Namespace, "name", key.Name)

	if err := r.client.Delete(ctx, binding, client.Preconditions{UID: &binding.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete RoleBinding %q: %w", key.Name, err)
	}

	return errDeleted
}
