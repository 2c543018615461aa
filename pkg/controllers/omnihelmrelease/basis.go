package omnihelmrelease

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
)

// What waits for its turn may wait for hours: a question about a chart, a comparison, and an action for its chart, a worker or memory.
// Hundreds may wait, so they do not hold what they were decided from: they read it again when their turn comes, and end if it is
// not the same.

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

// mayBegin returns what is asked right before an action changes the first thing, and maybe again later. An edit counts until then: it
// may suspend the release. So does what somebody else makes of the release. What has begun goes on.
func (r *reconciler) mayBegin(s *scope, action helm.Action) func(context.Context) error {
	from, engine, latest, decided := basisOf(s), s.engine, s.latest(), r.options.Now()

	return func(ctx context.Context) error {
		if r.runner.job(from.uid).changing {
			return nil
		}

		if err := r.unchanged(ctx, from, action); err != nil {
			return err
		}

		if err := r.lookAgain(ctx, engine, latest, decided); err != nil {
			return err
		}

		r.runner.changes(from.uid)

		return nil
	}
}

// unchanged returns an error if the object was edited since an action was decided, or the action was stopped. An uninstall goes on if
// the object is gone.
func (r *reconciler) unchanged(ctx context.Context, from basis, action helm.Action) error {
	if ctx.Err() != nil {
		return &helm.Error{Reason: helm.ReasonInterrupted, Message: "the action was stopped before it was begun"}
	}

	release, err := r.releaseAgain(ctx, from)

	switch {
	case err != nil && action != helm.ActionUninstall:
		return notAgain(err)
	case err == nil && release.Generation != from.generation:
		return errWithdrawn
	default:
		return nil
	}
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
	if err := r.unchanged(ctx, from, request.Decision.Action); err != nil {
		return err
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
	if err != nil && request.Decision.Action != helm.ActionUninstall {
		return notAgain(err)
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
