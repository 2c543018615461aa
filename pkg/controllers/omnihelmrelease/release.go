package omnihelmrelease

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// release brings the release to its desired state: it reads, decides, and begins at most one action.
func (r *reconciler) release(ctx context.Context, s *scope) (loop.Outcome, error) {
	if outcome, err := r.free(ctx, s); err != nil || !outcome.Continues() {
		return outcome, err
	}

	if outcome, err := r.claim(ctx, s); err != nil || !outcome.Continues() {
		return outcome, err
	}

	s.want = wanted(s.release, s.last, s.resolved.ArchiveDigest, s.values.Digest())
	s.want.Process, s.want.Hub = r.process, r.options.HubID
	s.decision = helm.Decide(s.want, withoutForeignDigests(*s.observed, s.want.Owner), r.lockClock())

	switch s.decision.Action {
	case helm.ActionNone, helm.ActionTest:
		s.done = true

		return loop.Continue(v1alpha1.ReasonDeployed, "%s%s", deployed(s), unchecked(s.latest())), nil
	case helm.ActionWait:
		return loop.Wait(s.decision.After, v1alpha1.ReasonLocked, "%s", s.decision.Why), nil
	case helm.ActionStall:
		return loop.Stall(v1alpha1.ReasonActionFailed, "%s", r.exhausted(ctx, s)), nil
	default:
		if s.opened.Suspended {
			return loop.Wait(0, v1alpha1.ReasonClusterSuspended, "OmniCluster %q is suspended: %s of release %s begins when it is resumed, "+
				"with spec.suspend: false in Git or: kubectl omni resume %[1]s", s.release.Spec.ClusterRef.Name, s.decision.Action, fullName(s.release)), nil
		}

		if reason, why := mustNotBegin(s); why != "" {
			return loop.Stall(reason, "%s", why), nil
		}

		if outcome := r.needsArchive(s); !outcome.Continues() {
			return outcome, nil
		}

		return r.act(ctx, s)
	}
}

// lockClock is the time by which a revision counts as abandoned that another process or client has left without a result.
func (r *reconciler) lockClock() time.Time { return r.options.Skew.Now().Earliest(r.options.Now()) }

// free proceeds unless an action is under way, or the release waits for itself.
func (r *reconciler) free(ctx context.Context, s *scope) (loop.Outcome, error) {
	if s.last.running() {
		return underWay(s.release, s.last), nil
	}

	if stuck, ok := r.runner.stuck(client.ObjectKeyFromObject(s.release)); ok {
		return loop.Stall(v1alpha1.ReasonActionFailed, "%s of release %s, begun at %s, does not return. "+
			"It changes nothing any more, but keeps a processor busy, so nothing else is begun until it returns: if that takes long, restart the controller",
			stuck.action, fullName(s.release), words.Time(stuck.begun)), nil
	}

	if path, err := r.cycle(ctx, s.release); err != nil {
		return loop.Outcome{}, err
	} else if path != "" {
		return loop.Stall(v1alpha1.ReasonDependencyCycle, "releases wait for one another: %s; take one out of spec.dependsOn", path), nil
	}

	return loop.Proceed(), nil
}

// claim reads the release in the workload cluster, and proceeds with what was observed if it is this object's, or may become so.
func (r *reconciler) claim(ctx context.Context, s *scope) (loop.Outcome, error) {
	s.engine = r.engine(s.opened, s.release.Namespace, s.release.EffectiveReleaseName(), s.release.Spec.Namespace)

	observed, err := observe(ctx, s)
	if err != nil {
		return r.explainCluster(s, err), nil
	}

	if reason, why, err := r.foreign(ctx, s, observed); err != nil {
		return loop.Outcome{}, err
	} else if why != "" {
		return loop.Stall(reason, "%s", why), nil
	}

	if outcome := r.mark(ctx, s, observed); !outcome.Continues() {
		return outcome, nil
	}

	// Before the status says that there is no revision: then it would not say any more that there was one.
	if outcome := installsAgain(s, observed); !outcome.Continues() {
		return outcome, nil
	}

	s.observed = &observed

	return loop.Proceed(), nil
}

// isAbsent reports whether there is no release, or one that was uninstalled.
func isAbsent(observed helm.Observed) bool {
	latest := observed.Latest()

	return latest == nil || latest.Status == helm.StatusUninstalled
}

// installsAgain waits with a release that is gone, if the status says that this object had it in this cluster: it has seen a revision, or
// the release was once as wanted.
func installsAgain(s *scope, observed helm.Observed) loop.Outcome {
	status := &s.release.Status
	had := (status.Revision > 0 || status.ChartDigest != "") && clusteraccess.Moved(status.ClusterID, s.opened.ClusterID) == ""

	if !had || !isAbsent(observed) {
		return loop.Proceed()
	}

	return s.opened.MakeAgain("release " + fullName(s.release))
}

// mustNotBegin returns why the action that was decided must not begin before somebody changes something; empty if it may.
func mustNotBegin(s *scope) (reason, why string) {
	action := s.decision.Action

	// What is unlocked is upgraded or rolled back next. By then the unlock counts as an attempt of this generation, and no
	// revision would be of a later state any more.
	if action == helm.ActionUpgrade || action == helm.ActionRollback || action == helm.ActionUnlock {
		if why := olderState(s.release, s.observed.Latest()); why != "" {
			return v1alpha1.ReasonOlderState, why
		}
	}

	if action == helm.ActionInstall || action == helm.ActionUpgrade {
		return v1alpha1.ReasonChartRefused, refusal(s)
	}

	return "", ""
}

// olderState says why a release that is there must not be replaced: it was made by a later state of the object than those
// that the status knows, as after the restore of the API's storage. An upgrade would delete what the later one made. Edits
// raise the generation, so it is not compared. Empty if it may be.
func olderState(release *v1alpha1.OmniHelmRelease, latest *helm.Revision) string {
	known := release.Status.LastAttemptedGeneration
	if known == 0 { // the status was lost
		known = release.Generation
	}

	if latest == nil || latest.Owner != string(release.UID) || latest.Generation <= known ||
		release.Annotations[v1alpha1.AnnotationReplaceRevision] == strconv.Itoa(latest.Number) {
		return ""
	}

	return fmt.Sprintf("revision %d of release %s was made by a later state of this object (generation %d; the last that is known here is %d), as after the restore of a snapshot: "+
		"an upgrade would delete what was made since. Write into the object what is to run, and then, to have it, set the annotation %s: %q",
		latest.Number, fullName(release), latest.Generation, known, v1alpha1.AnnotationReplaceRevision, strconv.Itoa(latest.Number))
}

// act begins the action that was decided, if it may begin now.
func (r *reconciler) act(ctx context.Context, s *scope) (loop.Outcome, error) {
	if s.decision.Action == helm.ActionInstall || s.decision.Action == helm.ActionUpgrade {
		if why, err := r.waitsFor(ctx, s.release); err != nil {
			return loop.Outcome{}, err
		} else if why != "" {
			return loop.Wait(0, v1alpha1.ReasonDependencyNotReady, "%s", why), nil
		}
	}

	if at := notBefore(s.release, s.last, s.decision, r.options.Now()); at.After(r.options.Now()) {
		return loop.Wait(at.Sub(r.options.Now()), failureReason(s.last.err), "%s; %s of release %s is tried at %s",
			failureOf(s), s.decision.Action, fullName(s.release), words.Time(at)), nil
	}

	if recordAttempt(s.release) {
		return loop.Persist(v1alpha1.ReasonProgressing, "about to %s release %s", s.decision.Action, fullName(s.release)), nil
	}

	return r.begin(s, s.decision.Action, r.action(s)), nil
}

// recordAttempt writes into the status, before an action begins, where a release may be and which generation made it, and
// reports whether that is news. After a crash, a deletion looks for the release there, and its revision is known as this
// object's.
func recordAttempt(release *v1alpha1.OmniHelmRelease) bool {
	status := &release.Status
	news := status.ReleaseName == "" || status.LastAttemptedGeneration != release.Generation

	if status.ReleaseName == "" {
		status.ReleaseName, status.Namespace = release.EffectiveReleaseName(), release.Spec.Namespace
	}

	status.LastAttemptedGeneration = release.Generation

	return news
}

// observe lists the revisions.
func observe(ctx context.Context, s *scope) (helm.Observed, error) {
	return clusteraccess.Read(ctx, s.opened.Cluster, s.engine.Observe)
}

// details returns what a revision was made from.
func details(ctx context.Context, s *scope, revision int) (helm.Details, error) {
	return clusteraccess.Read(ctx, s.opened.Cluster, func(ctx context.Context) (helm.Details, error) {
		return s.engine.Details(ctx, revision)
	})
}

// deployed returns the message about the deployed revision.
func deployed(s *scope) string {
	return fmt.Sprintf("revision %d of release %s is deployed: chart %s %s", s.latest().Number, fullName(s.release), s.resolved.Name, s.resolved.Version)
}

// unchecked returns what to say of values that no schema was asked about; empty if there is nothing to say.
func unchecked(latest *helm.Revision) string {
	if !latest.Unchecked {
		return ""
	}

	return ". The values are not checked against a values.schema.json of the chart: it is broken, or refers to something outside the chart"
}

// fullName returns the namespace and name of the release in the workload cluster.
func fullName(release *v1alpha1.OmniHelmRelease) string {
	return release.Spec.Namespace + "/" + release.EffectiveReleaseName()
}

func underWay(release *v1alpha1.OmniHelmRelease, running job) loop.Outcome {
	if running.begun.IsZero() {
		return loop.Wait(clusterPause, v1alpha1.ReasonProgressing, "the controller stops; the next one goes on")
	}

	return loop.Wait(0, v1alpha1.ReasonProgressing, "%s of release %s was begun at %s", running.action, fullName(release), words.Time(running.begun))
}

// settings returns the settings of the release's actions.
func settings(release *v1alpha1.OmniHelmRelease) helm.Settings {
	spec := &release.Spec

	return helm.Settings{
		Timeout: spec.Timeout.OrDefault(v1alpha1.DefaultHelmTimeout.OrDefault(0)), Wait: spec.Wait, WaitForJobs: spec.Wait && spec.WaitForJobs,
		DisableHooks: spec.DisableHooks, SkipCRDs: spec.SkipCRDs, TakeOwnership: spec.TakeOwnership,
		CreateNamespace: spec.CreateNamespace, MaxHistory: int(max(0, ptr.Deref(spec.MaxHistory, v1alpha1.DefaultHelmMaxHistory))),
	}
}

// wanted returns the desired release. Content changes only with what ends up in the cluster: another timeout makes no
// revision. Attempt changes with every setting and every request of a person, and starts the retries again.
//
// The failures are those that the status records for this attempt. If last is of the same attempt, its count is used
// instead: the cache may be behind.
func wanted(release *v1alpha1.OmniHelmRelease, last job, archiveDigest, valuesDigest string) helm.Wanted {
	spec, how := &release.Spec, settings(release)
	retries := max(0, ptr.Deref(spec.Retries, v1alpha1.DefaultHelmRetries))

	content := helm.Digest(archiveDigest, valuesDigest, strconv.FormatBool(spec.DisableHooks), strconv.FormatBool(spec.SkipCRDs))
	attempt := helm.Digest(content, how.Encode(), strconv.FormatBool(spec.RollsBack()), strconv.Itoa(int(retries)),
		loop.Requests(release))

	want := helm.Wanted{
		Content: content, Attempt: attempt, Owner: string(release.UID), Generation: release.Generation, Retries: int(retries), RollBack: spec.RollsBack(),
		Test: spec.Test.Enable, LockTime: how.Timeout,
	}

	switch {
	case !last.ended.IsZero() && last.attempt == attempt:
		want.Failures = last.failures()
	case release.Status.LastAttemptedDigest == attempt:
		want.Failures = int(release.Status.Failures)
	}

	return want
}

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
