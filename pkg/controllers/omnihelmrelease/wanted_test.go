package omnihelmrelease

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
)

func TestSettingsHaveDefaults(t *testing.T) {
	want := helm.Settings{Timeout: 5 * time.Minute, MaxHistory: 10}
	if diff := cmp.Diff(want, settings(&v1alpha1.OmniHelmRelease{})); diff != "" {
		t.Error(diff)
	}
}

// What the spec says arrives at Helm, all of it.
func TestSettings(t *testing.T) {
	release := newTestRelease(v1alpha1.HelmChart{})
	release.Spec.Timeout, release.Spec.MaxHistory = "1m", new(int32(3))
	release.Spec.Wait, release.Spec.WaitForJobs, release.Spec.DisableHooks, release.Spec.SkipCRDs = true, true, true, true
	release.Spec.TakeOwnership, release.Spec.CreateNamespace = true, true

	want := helm.Settings{
		Timeout: time.Minute, MaxHistory: 3, Wait: true, WaitForJobs: true, DisableHooks: true, SkipCRDs: true, TakeOwnership: true, CreateNamespace: true,
	}
	if diff := cmp.Diff(want, settings(release)); diff != "" {
		t.Error(diff)
	}

	// The rules want wait with it; alone it waits for nothing.
	release.Spec.Wait, want.Wait, want.WaitForJobs = false, false, false
	if diff := cmp.Diff(want, settings(release)); diff != "" {
		t.Error(diff)
	}
}

func TestWanted(t *testing.T) {
	release := func(changes ...func(*v1alpha1.OmniHelmRelease)) *v1alpha1.OmniHelmRelease {
		made := newTestRelease(v1alpha1.HelmChart{})
		made.UID = "uid"

		for _, change := range changes {
			change(made)
		}

		return made
	}

	base := wanted(release(), job{}, "chart", "values")
	if base.Owner != "uid" || base.Retries != 3 || base.LockTime != 5*time.Minute || base.Test || base.RollBack {
		t.Errorf("wanted %+v", base)
	}

	for _, test := range []struct {
		name             string
		change           func(*v1alpha1.OmniHelmRelease)
		content, attempt bool // whether it changes
	}{
		{"nothing", func(*v1alpha1.OmniHelmRelease) {}, false, false},
		{"the kubeconfig", func(r *v1alpha1.OmniHelmRelease) { r.Spec.KubeconfigSecretRef.Name = "other" }, false, false},
		{"the interval", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Interval = "1h" }, false, false},
		{"the timeout", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Timeout = "1h" }, false, true},
		{"waiting", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Wait = true }, false, true},
		{"waiting for Jobs", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Wait, r.Spec.WaitForJobs = true, true }, false, true},
		{"the namespace", func(r *v1alpha1.OmniHelmRelease) { r.Spec.CreateNamespace = true }, false, true},
		{"the history", func(r *v1alpha1.OmniHelmRelease) { r.Spec.MaxHistory = new(int32(3)) }, false, true},
		{"ownership", func(r *v1alpha1.OmniHelmRelease) { r.Spec.TakeOwnership = true }, false, true},
		{"rollback", func(r *v1alpha1.OmniHelmRelease) { r.Spec.RollbackOnFailure = new(true) }, false, true},
		{"a person's request", func(r *v1alpha1.OmniHelmRelease) {
			r.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
		}, false, true},
		{"hooks", func(r *v1alpha1.OmniHelmRelease) { r.Spec.DisableHooks = true }, true, true},
		{"CRDs", func(r *v1alpha1.OmniHelmRelease) { r.Spec.SkipCRDs = true }, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := wanted(release(test.change), job{}, "chart", "values")
			if (got.Content != base.Content) != test.content || (got.Attempt != base.Attempt) != test.attempt {
				t.Errorf("content changed: %v, attempt changed: %v", got.Content != base.Content, got.Attempt != base.Attempt)
			}
		})
	}

	if wanted(release(), job{}, "chart2", "values").Content == base.Content || wanted(release(), job{}, "chart", "values2").Content == base.Content {
		t.Error("the chart and the values do not count")
	}
}

func TestFailuresBelongToAnAttempt(t *testing.T) {
	release := newTestRelease(v1alpha1.HelmChart{})
	release.Status.Failures = 2
	release.Status.LastAttemptedDigest = "another"

	if got := wanted(release, job{}, "c", "v").Failures; got != 0 {
		t.Errorf("%d failures of another attempt", got)
	}

	release.Status.LastAttemptedDigest = wanted(release, job{}, "c", "v").Attempt

	if got := wanted(release, job{}, "c", "v").Failures; got != 2 {
		t.Errorf("%d failures, want 2", got)
	}
}

func TestRetryPause(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: 15 * time.Second, 1: 15 * time.Second, 2: 30 * time.Second, 3: time.Minute, 9: 5 * time.Minute, 99: 5 * time.Minute} {
		if got := retryPause(failures); got != want {
			t.Errorf("after %d failures %s, want %s", failures, got, want)
		}
	}
}

// A failure that a process before noted is tried again after the pause, but not first at a time of a clock that was ahead.
func TestNotBeforeByTheStatus(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

	for ago, want := range map[time.Duration]bool{5 * time.Second: true, time.Minute: false, -7 * 24 * time.Hour: false} {
		release := newTestRelease(v1alpha1.HelmChart{})
		release.Status.LastActionTime = &metav1.Time{Time: now.Add(-ago)}

		if at := notBefore(release, job{}, helm.Decision{Action: helm.ActionUpgrade, Failures: 1}, now); at.After(now) != want {
			t.Errorf("failed %s ago: tried at %s", ago, at)
		}
	}
}

// What has failed may be asked for again once something else was in effect: another try is made, and is counted from the start.
func TestBackAndForthIsTriedAgain(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.Retries = new(int32(0)) })
	f.settle()

	broken, done := &helm.Error{Reason: helm.ReasonFailed, Message: "no"}, []helm.Action{helm.ActionInstall}

	for range 2 {
		f.cluster.fail = broken
		f.edit(withValues(`{"a":1}`))
		f.settle()
		f.pass(time.Hour)
		f.settle()
		f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonActionFailed)

		done = append(done, helm.ActionUpgrade)
		f.wantActions(done...)

		f.cluster.fail = nil
		f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Values = nil })
		f.settle()
		f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)

		done = append(done, helm.ActionUpgrade)
		f.wantActions(done...)
	}
}

// TestDigestsOutlastReleases pins what statuses and Helm's records keep across an upgrade of the controller: with another content every
// release of a fleet would be upgraded, and with another attempt those that have used up their retries would begin again. See
// docs/development/releases.md.
func TestDigestsOutlastReleases(t *testing.T) {
	const content, attempt = "3d33e4999a1a43b20d19181a161de7b47e9755f9", "35467c48306a9c0f4e606ee2a21e85097a46c6a6"

	release := newTestRelease(v1alpha1.HelmChart{})
	release.Spec.Timeout, release.Spec.MaxHistory, release.Spec.Wait, release.Spec.SkipCRDs = "1m", new(int32(3)), true, true

	if got := wanted(release, job{}, "chart", "values"); got.Content != content || got.Attempt != attempt {
		t.Errorf("content %q, attempt %q, want %q and %q", got.Content, got.Attempt, content, attempt)
	}
}
