package omnihelmrelease

import (
	"strconv"

	"k8s.io/utils/ptr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

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
