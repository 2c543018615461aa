package omnihelmrelease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/asynccache"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
)

// caKey is the key of a certificate authority's certificate in a Secret.
const caKey = "ca.crt"

// findChart resolves the chart. The chart is downloaded only when an action needs it.
func (r *reconciler) findChart(ctx context.Context, s *scope) (loop.Outcome, error) {
	source, err := r.source(ctx, s.release)
	if outcome, done := explainInput(err); done {
		return outcome, nil
	} else if err != nil {
		return explainChart(err, 0), nilUnlessAPI(err)
	}

	s.key, s.source = sourceKey(source, s.release), source
	from := basisOf(s)
	question := asynccache.Question[string]{Key: s.key, Group: source.Host(), Slot: askedBy(s.release.Namespace, source.Host()), Fresh: fresh(s.release)}
	if s.release.Status.LastHandledReconcileAt != loop.RequestedAt(s.release) {
		question.After = r.options.Now() // somebody knows of a chart that was published a moment ago
	}

	found, ok := r.found.Ask(ctx, client.ObjectKeyFromObject(s.release), question, func(ctx context.Context, asked asynccache.Question[string]) (resolved *charts.Resolved, err error) {
		err = recoverPanic(func() (err error) {
			source, key, err := r.sourceAgain(ctx, from)
			if err == nil && key != question.Key {
				err = errWithdrawn
			}

			if err != nil {
				return err
			}

			source.AskedAfter = asked.After
			resolved, err = r.charts.Resolve(ctx, source)

			return err
		})

		return resolved, err
	})
	if !ok {
		return s.unanswered(s.asking(v1alpha1.ConditionChartFetched, "looking for chart %s", source.Chart)), nil
	}

	now := r.options.Now()

	if found.Err != nil {
		return s.without(found.Err, found.Until.Sub(now)), nil
	}

	// A chart that an action could not download is as missing as one that was not found.
	if wait := s.last.ended.Add(validFor(fresh(s.release), s.last.err, s.last.failedInRow)).Sub(now); isChartError(s.last.err) && s.last.source == s.key && wait > 0 {
		return explainChart(s.last.err, wait), nil
	}

	s.resolved = found.Value
	s.release.Status.FoundChart = &v1alpha1.HelmFoundChart{Source: meaning(source), Version: found.Value.Version, Digest: found.Value.ArchiveDigest}

	return loop.Continue(v1alpha1.ReasonChartFound, "chart %s %s (%s)", found.Value.Name, found.Value.Version, found.Value.ArchiveDigest), nil
}

// recall makes the chart count that the repository named last, if that was for the same source: what is deployed is looked after as
// before, and only what needs the archive has this outcome.
func (s *scope) recall(otherwise loop.Outcome) (found *v1alpha1.HelmFoundChart) {
	found = s.release.Status.FoundChart
	if found == nil || found.Source != meaning(s.source) {
		return nil
	}

	s.resolved, s.away = charts.Known(s.source, found.Version, found.Digest), &otherwise

	return found
}

// unanswered returns the outcome while the repository has not answered. Many releases may wait for one that hangs, one after the other,
// for hours. What was told of the chart stays told. Who asks for a look has one when the answer is there.
func (s *scope) unanswered(asking loop.Outcome) loop.Outcome {
	told := apimeta.FindStatusCondition(s.release.Status.Conditions, v1alpha1.ConditionChartFetched)
	if told == nil || told.ObservedGeneration != s.release.Generation ||
		s.release.Status.LastHandledReconcileAt != loop.RequestedAt(s.release) || s.recall(asking) == nil {
		return asking
	}

	if told.Status == metav1.ConditionTrue {
		return loop.Continue(told.Reason, "%s", told.Message)
	}

	return loop.Note(told.Reason, "%s", told.Message)
}

// without returns the outcome for a chart that the repository did not name.
func (s *scope) without(err error, after time.Duration) loop.Outcome {
	outcome := explainChart(err, after)

	var failure *charts.Error
	if !errors.As(err, &failure) {
		return outcome
	}

	if !failure.Reason.Temporary() {
		s.release.Status.FoundChart = nil // it has answered, and named none

		return outcome
	}

	found := s.recall(outcome)
	if found == nil {
		return outcome
	}

	return loop.Note(outcome.Reason(), "%s; meanwhile what was found there last counts: chart %s %s (%s)", err, s.resolved.Name, found.Version, found.Digest).
		Within(max(after, time.Second))
}

// needsArchive returns the outcome of an action that needs the archive of a chart that is not to be had now; Proceed if it needs none.
func (r *reconciler) needsArchive(s *scope) loop.Outcome {
	if s.away == nil || s.decision.Action != helm.ActionInstall && s.decision.Action != helm.ActionUpgrade || r.charts.Keeps(s.source, s.resolved) {
		return loop.Proceed()
	}

	return *s.away
}

// askedBy is the key of a host's slots for a namespace.
func askedBy(namespace, host string) string { return namespace + "/" + host }

// hostOf returns the host in a key of askedBy.
func hostOf(key string) string {
	_, host, _ := strings.Cut(key, "/")

	return host
}

// source returns where the chart is.
func (r *reconciler) source(ctx context.Context, release *v1alpha1.OmniHelmRelease) (charts.Source, error) {
	spec := &release.Spec.Chart
	source := charts.Source{Repository: spec.Repository, Chart: spec.Chart, Version: spec.Version, Digest: spec.Digest, Tenant: release.Namespace}
	if source.IsOCI() {
		source.Repository = "" // it says nothing about the chart
	}

	if ref := spec.AuthSecretRef; ref != nil {
		secret, err := sources.Secret(ctx, r.live, sources.Reference{Namespace: release.Namespace, Name: ref.Name, Field: "spec.chart.authSecretRef"})
		if err != nil {
			return source, err
		}

		if source.Credentials, err = charts.CredentialsFrom(ctx, secret.Data, source.Host()); err != nil {
			return source, fmt.Errorf("Secret %q (spec.chart.authSecretRef): %w", ref.Name, err)
		}
	}

	if ref := spec.CASecretRef; ref != nil {
		ca, err := sources.SecretValue(ctx, r.live, sources.Reference{Namespace: release.Namespace, Name: ref.Name, Key: caKey, Field: "spec.chart.caSecretRef"})
		if err != nil {
			return source, err
		}

		source.CA = ca
	}

	if spec.Verify != nil {
		ref := spec.Verify.KeyringSecretRef

		keyring, err := sources.SecretValue(ctx, r.live, sources.Reference{
			Namespace: release.Namespace, Name: ref.Name, Key: cmp.Or(ref.Key, v1alpha1.DefaultKeyringKey), Field: "spec.chart.verify.keyringSecretRef",
		})
		if err != nil {
			return source, err
		}

		// An empty keyring verifies nothing, and must not mean that no verification is wanted.
		source.Keyring = append([]byte{}, keyring...)
	}

	return source, nil
}

func isChartError(err error) bool {
	var failure *charts.Error

	return errors.As(err, &failure)
}

// nilUnlessAPI returns the errors that have to be tried again with growing pauses.
func nilUnlessAPI(err error) error {
	if isChartError(err) {
		return nil
	}

	return err
}

// meaning returns a digest of everything that decides which chart is meant, and who has to have signed it.
func meaning(source charts.Source) string {
	keyring := "none"
	if source.Keyring != nil {
		keyring = string(source.Keyring)
	}

	return helm.Digest(source.Repository, source.Chart, source.Version, source.Digest, keyring)
}

// sourceKey returns a key that changes with the meaning, with what decides who may have the chart, and with every request of a
// person.
func sourceKey(source charts.Source, release *v1alpha1.OmniHelmRelease) string {
	return helm.Digest(meaning(source), source.Credentials.Username, source.Credentials.Password, string(source.CA), loop.Requests(release))
}

// explainChart returns the outcome for a chart that could not be had; it is tried again after a while.
func explainChart(err error, after time.Duration) loop.Outcome {
	var failure *charts.Error
	if !errors.As(err, &failure) {
		return loop.Wait(after, v1alpha1.ReasonError, "%s", err.Error())
	}

	reason := chartReason(failure.Reason)
	if failure.Reason.Temporary() {
		return loop.Wait(max(after, time.Second), reason, "%s; what is deployed stays as it is", err.Error())
	}

	return loop.Stall(reason, "%s; what is deployed stays as it is", err.Error())
}

func chartReason(reason charts.Reason) string {
	switch reason {
	case charts.NotFound:
		return v1alpha1.ReasonChartNotFound
	case charts.Unauthorized:
		return v1alpha1.ReasonChartUnauthorized
	case charts.TooLarge:
		return v1alpha1.ReasonChartTooLarge
	case charts.DigestMismatch:
		return v1alpha1.ReasonDigestMismatch
	case charts.ForbiddenAddress:
		return v1alpha1.ReasonForbiddenAddress
	case charts.TLSFailed:
		return v1alpha1.ReasonTLSFailed
	case charts.Unverified:
		return v1alpha1.ReasonChartUnverified
	case charts.Refused:
		return v1alpha1.ReasonChartRefused
	case charts.Invalid:
		return v1alpha1.ReasonChartInvalid
	case charts.Timeout, charts.Unreachable:
		return v1alpha1.ReasonRepositoryUnreachable
	case charts.Unavailable:
		return v1alpha1.ReasonError
	}

	return v1alpha1.ReasonError
}

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

// values reads and merges all values: those of valuesFrom in their order, then the inline ones, then each text with a targetPath, as
// Flux does and as helm --set goes over --values.
func (r *reconciler) values(ctx context.Context, release *v1alpha1.OmniHelmRelease) (values.Values, error) {
	spec := &release.Spec.Chart

	var (
		layers, placed []values.Layer
		size           int
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

		if layer.TargetPath != "" {
			placed = append(placed, *layer)
		} else {
			layers = append(layers, *layer)
		}
	}

	if spec.Values != nil {
		layers = append(layers, values.Layer{From: "spec.chart.values", Text: spec.Values.Raw})
	}

	merged, err := values.Merge(ctx, append(layers, placed...))
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
