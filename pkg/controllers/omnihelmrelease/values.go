package omnihelmrelease

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/utils/ptr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
)

// invalid is the error for values that cannot be used until a user changes them.
type invalid struct{ message string }

// Error returns which source of values is wrong, and how.
func (i *invalid) Error() string { return i.message }

// resolveValues reads and merges the values.
func (r *reconciler) resolveValues(ctx context.Context, s *scope) (loop.Outcome, error) {
	merged, err := r.values(ctx, s.release)
	if outcome, done := explainInput(err); done {
		return outcome, nil
	} else if err != nil {
		return loop.Outcome{}, err
	}

	s.values = merged

	return loop.Continue(v1alpha1.ReasonSucceeded, "the values have digest %s", merged.Digest()), nil
}

// values reads and merges all values.
func (r *reconciler) values(ctx context.Context, release *v1alpha1.OmniHelmRelease) (values.Values, error) {
	spec := &release.Spec.Chart

	var (
		layers []values.Layer
		size   int
	)

	for i := range spec.ValuesFrom {
		layer, err := r.layer(ctx, release.Namespace, &spec.ValuesFrom[i], fmt.Sprintf("spec.chart.valuesFrom[%d]", i))
		if err != nil {
			return values.Values{}, err
		}

		if layer == nil {
			continue
		}

		// The number of references is not limited, and all of them can refer to one large object.
		if size += len(layer.Text); size > values.MaxBytes {
			return values.Values{}, &invalid{fmt.Sprintf("%s: with the values before it, it has more than %d bytes: make them smaller", layer.From, values.MaxBytes)}
		}

		layers = append(layers, *layer)
	}

	if spec.Values != nil {
		layers = append(layers, values.Layer{From: "spec.chart.values", Text: spec.Values.Raw})
	}

	merged, err := values.Merge(ctx, layers)
	if ctx.Err() != nil {
		return values.Values{}, fmt.Errorf("read the values: %w", ctx.Err())
	}

	if err != nil {
		return values.Values{}, &invalid{err.Error()}
	}

	return merged, nil
}

// layer reads one source of values; nil if it is optional and does not exist.
func (r *reconciler) layer(ctx context.Context, namespace string, ref *v1alpha1.HelmValuesReference, field string) (*values.Layer, error) {
	from := sources.Reference{Namespace: namespace, Name: ref.Name, Key: cmp.Or(ref.Key, v1alpha1.DefaultValuesKey), Field: field}
	isSecret := ref.Kind == v1alpha1.ValuesSecret

	read := sources.ConfigMapValue
	if isSecret {
		read = sources.SecretValue
	}

	text, err := read(ctx, r.live, from)
	if ptr.Deref(ref.Optional, false) && sources.Missing(err) != nil {
		return nil, nil //nolint:nilnil // nothing there, and nothing wrong
	}

	if err != nil {
		return nil, err
	}

	return &values.Layer{From: fmt.Sprintf("%s %q, key %q (%s)", ref.Kind, ref.Name, from.Key, field), Text: text, TargetPath: ref.TargetPath, Secret: isSecret}, nil
}

// explainInput returns the outcome for an input that does not exist or cannot be used; done is false for every other
// error and for none.
func explainInput(err error) (outcome loop.Outcome, done bool) {
	const stays = "; what is deployed stays as it is"

	var wrong *invalid
	if errors.As(err, &wrong) {
		return loop.Stall(v1alpha1.ReasonValuesInvalid, "%s%s", wrong.message, stays), true
	}

	return sources.Outcome(err, v1alpha1.ReasonValueNotFound, stays)
}
