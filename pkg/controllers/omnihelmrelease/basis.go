package omnihelmrelease

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
)

// An action may wait for its turn for hours, and then for a chart, a worker or memory before it changes anything. What was
// wanted when it was decided may not be wanted any more then, so it is withdrawn as soon as a run sees that. Hundreds may
// wait, so neither actions nor calls hold what they were decided from while they do: they read it again when their turn
// comes, and end if it is not the same.

// withdrawIfSpecChanged withdraws an action that has changed nothing yet and was decided from another spec. A run begins with it: what
// the new spec asks for may be impossible, but the former one does not count any more.
func (r *reconciler) withdrawIfSpecChanged(s *scope) {
	if s.last.running() && s.last.generation != s.release.Generation {
		r.runner.withdraw(s.release.UID)
	}
}

// withdrawIfInputsChanged withdraws an action that has changed nothing yet and was decided from another chart, other values or
// another kubeconfig, which change without the spec.
func (r *reconciler) withdrawIfInputsChanged(s *scope) {
	if attempt := wanted(s.release, s.last, s.resolved.ArchiveDigest, s.values.Digest()).Attempt; s.last.inputs != inputs(attempt, s.opened) {
		r.runner.withdraw(s.release.UID)
	}
}

// inputs returns a digest of what an action is decided from, beside the release that it finds.
func inputs(attempt string, opened *clusteraccess.Opened) string {
	return helm.Digest(attempt, opened.Kubeconfig)
}

// basis is what something that waits for its turn was decided from: the names and the digest of what is read again.
type basis struct {
	name       types.NamespacedName
	uid        types.UID
	generation int64
	values     string
}

func basisOf(s *scope) basis {
	return basis{
		name: client.ObjectKeyFromObject(s.release), uid: s.release.UID, generation: s.release.Generation, values: s.values.Digest(),
	}
}

// errWithdrawn is the error of what is not what was decided from any more.
var errWithdrawn = &helm.Error{
	Reason: helm.ReasonInterrupted, Message: "what is wanted was changed while this waited for its turn; what to do is decided anew",
}

// releaseAgain reads the object; errWithdrawn if it is gone, or another one.
func (r *reconciler) releaseAgain(ctx context.Context, from basis) (*v1alpha1.OmniHelmRelease, error) {
	release := &v1alpha1.OmniHelmRelease{}

	err := r.client.Get(ctx, from.name, release)
	if apierrors.IsNotFound(err) || err == nil && release.UID != from.uid {
		return nil, errWithdrawn
	}

	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}

	return release, nil
}

// sourceAgain reads where the chart is, and returns the key of that. Credentials, certificates and keys that were replaced
// meanwhile are those that count.
func (r *reconciler) sourceAgain(ctx context.Context, from basis) (source charts.Source, key string, err error) {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()

	release, err := r.releaseAgain(ctx, from)
	if err != nil {
		return charts.Source{}, "", err
	}

	source, err = r.source(ctx, release)

	return source, sourceKey(source, release), err
}

// valuesAgain reads the values; errWithdrawn if they are not the same. The caller has a place among the readers.
func (r *reconciler) valuesAgain(ctx context.Context, from basis) (values.Values, error) {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()

	release, err := r.releaseAgain(ctx, from)
	if err != nil {
		return values.Values{}, err
	}

	merged, err := r.values(ctx, release)
	if err == nil && merged.Digest() != from.values {
		err = errWithdrawn
	}

	return merged, err
}

// withValues calls a function with the values that something was decided from, for what was learned when its turn had
// come. The time of that may be used up.
func (r *reconciler) withValues(from basis, use func(values.Values)) error {
	ctx, cancel := context.WithTimeout(context.Background(), questionTimeout)
	defer cancel()

	done, err := r.reading.Acquire(ctx, from.name.Namespace, 1)
	if err != nil {
		return err
	}
	defer done()

	merged, err := r.valuesAgain(ctx, from)
	if err == nil {
		use(merged)
	}

	return err
}

// fill reads what an action needs beside the decision.
func (r *reconciler) fill(ctx context.Context, request *helm.Request, from basis, resolved *charts.Resolved) error {
	release, err := r.releaseAgain(ctx, from)
	uninstalls := request.Decision.Action == helm.ActionUninstall

	switch {
	case err == nil && release.Generation != from.generation:
		return errWithdrawn
	case err != nil && !uninstalls:
		return notAgain(err)
	}

	if request.Decision.Action == helm.ActionInstall || request.Decision.Action == helm.ActionUpgrade {
		source, _, err := r.sourceAgain(ctx, from)
		if err != nil {
			return notAgain(err)
		}

		archive, err := r.charts.Open(ctx, source, resolved)
		if err != nil {
			return err
		}

		request.Chart = archive
	}

	done, err := r.reading.Acquire(ctx, from.name.Namespace, 1)
	if err != nil {
		return notAgain(err)
	}
	defer done()

	// A server repeats what it refuses, also of a hook: values of Secrets are removed from messages. An uninstall removes
	// them as far as the Secrets still exist.
	request.Values, err = r.valuesAgain(ctx, from)
	if err != nil && !uninstalls {
		return notAgain(err)
	}

	// The chart may have been waited for, too. Nothing was edited before this, so the values are those of the same spec.
	if release, err := r.releaseAgain(ctx, from); err == nil && release.Generation != from.generation {
		return errWithdrawn
	}

	return nil
}

// notAgain returns the error of an action that could not read again what it was decided from: the next run finds out what
// that means.
func notAgain(err error) error {
	if errors.Is(err, errWithdrawn) {
		return err
	}

	return &helm.Error{Reason: helm.ReasonInterrupted, Message: "read again what is needed: " + err.Error()}
}
