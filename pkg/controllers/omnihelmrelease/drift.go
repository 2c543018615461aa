package omnihelmrelease

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/asynccache"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// maxShownDifferences is how many differing objects a message names.
const maxShownDifferences = 10

// compare compares the release with the live objects, and corrects differences if the spec asks for that. A difference
// alone does not keep the object from being Ready.
func (r *reconciler) compare(ctx context.Context, s *scope) (loop.Outcome, error) {
	spec := &s.release.Spec.DriftDetection
	if spec.Mode != v1alpha1.DriftWarn && spec.Mode != v1alpha1.DriftCorrect {
		return loop.Skip(v1alpha1.ReasonDisabled, "spec.driftDetection.mode is Disabled"), nil
	}

	revision, ignores, engine, from := s.latest().Number, ignored(spec.Ignore), s.engine, basisOf(s)
	key := helm.Digest(string(s.release.UID), fmt.Sprint(revision), fmt.Sprintf("%+v", ignores), loop.Requests(s.release), s.opened.ClusterID, s.values.Digest())

	question := asynccache.Question[string]{Key: key, Group: clusterOf(s.release), Fresh: fresh(s.release)}

	found, ok := r.drift.Ask(ctx, client.ObjectKeyFromObject(s.release), question, func(ctx context.Context, _ asynccache.Question[string]) (differences []drift.Difference, err error) {
		err = recoverPanic(func() (err error) {
			differences, err = engine.Drift(ctx, revision, ignores)

			return errors.Join(r.redactAgain(err, from), r.showAgain(&differences, from))
		})

		return differences, err
	})

	switch {
	case !ok:
		return s.asking(v1alpha1.ConditionDrifted, "comparing release %s with the live objects", fullName(s.release)), nil
	case errors.Is(found.Err, helm.ErrRevisionGone):
		return loop.Skip(v1alpha1.ReasonProgressing, "%s", found.Err), nil
	case found.Err != nil && len(found.Value) == 0:
		return r.explainCluster(s, found.Err), nil
	case len(found.Value) == 0:
		return loop.Continue(v1alpha1.ReasonNoDrift, "%s; no live object differs", deployed(s)), nil
	case spec.Mode == v1alpha1.DriftWarn, len(owned(found.Value)) == 0:
		return loop.Note(v1alpha1.ReasonDriftFound, "%s; live objects differ: %s%s", deployed(s), listed(found.Value), notCompared(found)), nil
	case s.opened.Suspended:
		return loop.Note(v1alpha1.ReasonDriftFound, "%s; live objects differ, and are not corrected while OmniCluster %q is suspended: %s%s", deployed(s),
			s.release.Spec.ClusterRef.Name, listed(found.Value), notCompared(found)), nil
	default:
		return r.correct(s, found, revision, ignores), nil
	}
}

// correct applies differing objects again. It corrects what was found once; the next comparison shows whether that
// lasts.
func (r *reconciler) correct(s *scope, found asynccache.Answer[[]drift.Difference], revision int, ignores []drift.Ignore) loop.Outcome {
	own := owned(found.Value)

	if s.last.action == actionCorrect && s.last.attempt == s.want.Attempt && !s.last.begun.Before(found.At) {
		if s.last.err == nil && found.Err != nil {
			return r.explainCluster(s, found.Err)
		}

		if s.last.err == nil && len(own) < len(found.Value) {
			return loop.Note(v1alpha1.ReasonDriftFound, "%s; these differed and were applied again: %s; these are another release's: %s", deployed(s),
				listed(own), listed(others(found.Value)))
		}

		if s.last.err == nil {
			return loop.Continue(v1alpha1.ReasonDriftCorrected, "%s; these differed and were applied again: %s", deployed(s), listed(own))
		}

		if at := s.last.ended.Add(retryPause(s.last.failedInRow)); s.last.pauses() && at.After(r.options.Now()) {
			return loop.Wait(at.Sub(r.options.Now()), failureReason(s.last.err), "live objects differ (%s) and could not be corrected: %s", listed(own), s.last.err)
		}
	}

	engine, from, timeout, mayBegin := s.engine, basisOf(s), settings(s.release).Timeout, r.mayBegin(s, actionCorrect)

	r.begin(s, actionCorrect, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()

		// The manifest of this revision must not be forced over a later one, nor over what is another owner's by now.
		_, err := engine.Correct(ctx, revision, ignores, func() error { return mayBegin(ctx) })

		return r.redactAgain(err, from)
	})

	return loop.Note(v1alpha1.ReasonDriftFound, "%s; live objects differ and are applied again: %s%s", deployed(s), listed(own), notCompared(found))
}

// owned returns the differences that are corrected: those of objects that no other release has.
func owned(differences []drift.Difference) []drift.Difference {
	return slices.DeleteFunc(slices.Clone(differences), func(d drift.Difference) bool { return d.Owner != "" })
}

// others returns the differences of objects that another release has by now.
func others(differences []drift.Difference) []drift.Difference {
	return slices.DeleteFunc(slices.Clone(differences), func(d drift.Difference) bool { return d.Owner == "" })
}

// notCompared returns the message about objects that could not be compared; empty if there are none.
func notCompared(found asynccache.Answer[[]drift.Difference]) string {
	if found.Err == nil {
		return ""
	}

	return ". Not everything could be compared: " + found.Err.Error()
}

func ignored(rules []v1alpha1.DriftIgnore) []drift.Ignore {
	var ignores []drift.Ignore

	for _, rule := range rules {
		target := ptr.Deref(rule.Target, v1alpha1.DriftTarget{})
		ignores = append(ignores, drift.Ignore{
			Group: target.Group, Version: target.Version, Kind: target.Kind,
			Namespace: target.Namespace, Name: target.Name, Paths: rule.Paths,
		})
	}

	return ignores
}

func listed(differences []drift.Difference) string {
	texts := make([]string, 0, len(differences))
	for _, difference := range differences {
		texts = append(texts, difference.String())
	}

	return words.Few(texts, maxShownDifferences, "; ")
}

// shown returns differences as messages may show them, without what came from Secrets: a name or a key may be made of it.
// They are kept until the next comparison, so of those that no message names only the number and the owner stay.
func shown(differences []drift.Difference, merged values.Values) []drift.Difference {
	kept, named := slices.Clone(differences), map[bool]int{} // those of other releases, and all others

	for i := range kept {
		foreign := kept[i].Owner != ""

		if named[foreign]++; named[foreign] > maxShownDifferences {
			kept[i] = drift.Difference{Owner: kept[i].Owner}
		} else {
			kept[i] = kept[i].Without(merged.Remove)
		}
	}

	return kept
}

// showAgain makes differences what messages may show, for a comparison that held no values while it waited for its turn.
// Without values there are none to show.
func (r *reconciler) showAgain(differences *[]drift.Difference, from basis) error {
	if len(*differences) == 0 {
		return nil
	}

	found := *differences
	*differences = nil

	return r.withValues(from, func(merged values.Values) { *differences = shown(found, merged) })
}
