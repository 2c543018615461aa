package omnihelmrelease

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// maxShownDifferences is how many objects that differ are named.
const maxShownDifferences = 10

// test runs the chart's tests, once for each revision.
func (r *reconciler) test(_ context.Context, s *scope) (loop.Outcome, error) {
	if !s.release.Spec.Test.Enable {
		return loop.Skip(v1alpha1.ReasonDisabled, "spec.test.enable is not set"), nil
	}

	if s.decision.Action == helm.ActionTest {
		if testsAreVain(s) {
			return testsFailed(s, failureReason(s.last.err), fmt.Sprintf("the result of the tests cannot be noted: %s. They run again with the next "+
				"revision, or when the annotation %s gets a new value", s.last.err, v1alpha1.AnnotationReconcileRequestedAt)), nil
		}

		if at := notBefore(s.release, s.last, s.decision); at.After(r.options.Now()) {
			return loop.Wait(at.Sub(r.options.Now()), failureReason(s.last.err), "%s", s.last.err), nil
		}

		r.begin(s, helm.ActionTest, r.action(s))

		return underWay(s.release, r.runner.job(s.release.UID)), nil
	}

	if s.latest().Tested == helm.TestsPassed {
		return loop.Continue(v1alpha1.ReasonTestsPassed, "%s; its tests passed", deployed(s)), nil
	}

	said := "a test failed"
	if s.last.action == helm.ActionTest && s.last.err != nil {
		said = s.last.err.Error()
	}

	return testsFailed(s, v1alpha1.ReasonTestsFailed, said+". The tests run again with the next revision"), nil
}

// testsFailed tells what is wrong with the tests, as far as that counts.
func testsFailed(s *scope, reason, said string) loop.Outcome {
	if s.release.Spec.Test.IgnoreFailures {
		return loop.Note(reason, "%s; %s (spec.test.ignoreFailures is set)", deployed(s), said)
	}

	return loop.Stall(reason, "%s; %s", deployed(s), said)
}

// testsAreVain tells whether the tests were run as often as an action is tried,
// and their result was noted nowhere. A cluster that cannot be reached is waited for.
func testsAreVain(s *scope) bool {
	return s.last.action == helm.ActionTest && s.last.attempt == s.want.Attempt && s.last.failed() && s.last.row > s.want.Retries &&
		!interrupted(s.last.err) && failureReason(s.last.err) != v1alpha1.ReasonClusterUnreachable
}

// compare looks for differences between the release and the live objects, and
// corrects them if that is asked for. A difference alone does not keep the object
// from being Ready.
func (r *reconciler) compare(_ context.Context, s *scope) (loop.Outcome, error) {
	spec := &s.release.Spec.DriftDetection
	if spec.Mode != v1alpha1.DriftWarn && spec.Mode != v1alpha1.DriftCorrect {
		return loop.Skip(v1alpha1.ReasonDisabled, "spec.driftDetection.mode is Disabled"), nil
	}

	revision, ignores, engine, values := s.latest().Number, ignored(spec.Ignore), s.engine, s.values
	key := helm.Digest(string(s.release.UID), fmt.Sprint(revision), fmt.Sprintf("%+v", ignores), requested(s.release), s.opened.ClusterID)

	found, ok := r.drift.ask(client.ObjectKeyFromObject(s.release), question{key: key, group: clusterOf(s.release)}, fresh(s.release), func(ctx context.Context) ([]helm.Difference, error) {
		differences, err := engine.Drift(ctx, revision, ignores)

		return differences, discreet(err, values)
	})

	switch {
	case !ok:
		return s.asking(v1alpha1.ConditionDrifted, "comparing release %s with the live objects", fullName(s.release)), nil
	case errors.Is(found.err, helm.ErrRevisionGone):
		return loop.Skip(v1alpha1.ReasonProgressing, "%s", found.err), nil
	case found.err != nil && len(found.value) == 0:
		return r.explainCluster(s, found.err), nil
	case len(found.value) == 0:
		return loop.Continue(v1alpha1.ReasonNoDrift, "%s; no live object differs", deployed(s)), nil
	case spec.Mode == v1alpha1.DriftWarn:
		return loop.Note(v1alpha1.ReasonDriftFound, "%s; live objects differ: %s%s", deployed(s), listed(found.value), notCompared(found)), nil
	default:
		return r.correct(s, found, revision, ignores), nil
	}
}

// correct applies again what differs. What was found is corrected once; whether
// that lasts is seen at the next comparison.
func (r *reconciler) correct(s *scope, found answer[[]helm.Difference], revision int, ignores []helm.Ignore) loop.Outcome {
	if s.last.action == actionCorrect && s.last.attempt == s.want.Attempt && !s.last.begun.Before(found.at) {
		if s.last.err == nil && found.err != nil {
			return r.explainCluster(s, found.err)
		}

		if s.last.err == nil {
			return loop.Continue(v1alpha1.ReasonDriftCorrected, "%s; these differed and were applied again: %s", deployed(s), listed(found.value))
		}

		if at := s.last.ended.Add(retryPause(s.last.row)); at.After(r.options.Now()) {
			return loop.Wait(at.Sub(r.options.Now()), failureReason(s.last.err), "live objects differ (%s) and could not be corrected: %s", listed(found.value), s.last.err)
		}
	}

	engine, values, timeout := s.engine, s.values, settings(s.release).Timeout

	r.begin(s, actionCorrect, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()

		_, err := engine.Correct(ctx, revision, ignores)

		return discreet(err, values)
	})

	return loop.Note(v1alpha1.ReasonDriftFound, "%s; live objects differ and are applied again: %s%s", deployed(s), listed(found.value), notCompared(found))
}

// notCompared tells of objects that could not be compared, if there are any.
func notCompared(found answer[[]helm.Difference]) string {
	if found.err == nil {
		return ""
	}

	return ". Not everything could be compared: " + found.err.Error()
}

// discreet takes what came from a Secret out of an error: a server that refuses an
// object repeats what it refuses.
func discreet(err error, values helm.Values) error {
	var failure *helm.Error
	if !errors.As(err, &failure) {
		return err
	}

	return &helm.Error{Reason: failure.Reason, Message: values.Redact(failure.Message), Still: failure.Still}
}

func ignored(rules []v1alpha1.DriftIgnore) []helm.Ignore {
	var ignores []helm.Ignore

	for _, rule := range rules {
		ignores = append(ignores, helm.Ignore{
			Group: rule.Target.Group, Version: rule.Target.Version, Kind: rule.Target.Kind,
			Namespace: rule.Target.Namespace, Name: rule.Target.Name, Paths: rule.Paths,
		})
	}

	return ignores
}

func listed(differences []helm.Difference) string {
	var texts []string

	for i, difference := range differences {
		if i == maxShownDifferences {
			texts = append(texts, fmt.Sprintf("and %d more", len(differences)-i))

			break
		}

		texts = append(texts, difference.String())
	}

	return strings.Join(texts, "; ")
}
