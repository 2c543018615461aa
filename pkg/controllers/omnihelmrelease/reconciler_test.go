package omnihelmrelease

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

const (
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
	unknown = metav1.ConditionUnknown
)

func TestASecondRunWritesNothing(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
	f.want(v1alpha1.ConditionTested, unknown, v1alpha1.ReasonDisabled)
	f.want(v1alpha1.ConditionDrifted, metav1.ConditionUnknown, v1alpha1.ReasonDisabled)
	f.wantActions(helm.ActionInstall)

	before := f.get()
	if before.Status.Chart != "demo" || before.Status.Revision != 1 || before.Status.ChartDigest == "" || before.Status.ValuesDigest == "" {
		t.Errorf("status %+v", before.Status)
	}

	f.pass(time.Hour)
	f.run()
	f.restart()
	f.run()

	if after := f.get(); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the status was written again: %+v", after.Status)
	}

	f.wantActions(helm.ActionInstall)

	if got := f.charts.Downloads(); got != 1 {
		t.Errorf("%d downloads, want 1", got)
	}
}

func TestTheStatusSaysWhereBeforeThereIsARelease(t *testing.T) {
	f := newFixture(t)
	f.run()
	f.wantActions()

	if got := f.get().Status; got.ReleaseName != "app" || got.Namespace != "default" || got.ClusterID != "cluster-id" {
		t.Errorf("status %+v", got)
	}
}

func TestFailuresAreSpacedAndBounded(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.Retries = new(int32(1)) })
	f.cluster.fail = &helm.Error{Reason: helm.ReasonFailed, Message: "the reason"}
	f.settle()
	f.wantActions(helm.ActionInstall)

	if message := f.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonActionFailed); !strings.Contains(message, "the reason") || !strings.Contains(message, "12:00:15") {
		t.Error(message)
	}

	// Neither another run nor a restart tries earlier.
	f.run()
	f.restart()
	f.run()
	f.wantActions(helm.ActionInstall)

	f.pass(16 * time.Second)
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionInstall)
	f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonActionFailed)

	f.restart()
	f.pass(time.Hour)
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionInstall)

	if message := f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonActionFailed); !strings.Contains(message, "it broke") {
		t.Error(message)
	}

	f.cluster.fail = nil
	f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Values = &v1alpha1.FreeForm{Raw: []byte(`{"a":1}`)} })
	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)

	if got := f.get().Status; got.Failures != 0 || len(got.History) != 3 {
		t.Errorf("status %+v", got)
	}
}

// A chart that cannot be rendered is tried once, whatever spec.retries says, and not again after a restart.
func TestARefusedChartIsNotTriedAgain(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.cluster.refuse = &helm.Error{Reason: helm.ReasonRefused, Message: "chart demo 1.0.0: it takes too much memory"}
	f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Values = &v1alpha1.FreeForm{Raw: []byte(`{"a":1}`)} })
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade)

	before := f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonChartRefused)
	for _, words := range []string{"chart demo 1.0.0: it takes too much memory", "stays as it is", v1alpha1.AnnotationReconcileRequestedAt} {
		if !strings.Contains(before, words) {
			t.Errorf("%q does not say %q", before, words)
		}
	}

	version := f.get().ResourceVersion
	f.pass(time.Hour)
	f.settle()
	f.restart()
	f.pass(time.Hour)
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade)

	if after := f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonChartRefused); after != before || f.get().ResourceVersion != version {
		t.Errorf("the status was written again: %q became %q", before, after)
	}

	// Who asks for it gets another try.
	f.cluster.refuse = nil
	f.edit(func(r *v1alpha1.OmniHelmRelease) {
		r.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
	})
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade, helm.ActionUpgrade)
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
}

// Who asks gets a chart that was published a moment ago, although the repository was asked a moment before that.
func TestRequestFindsTheNewestChart(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Version = "^1" })
	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
	f.charts.Add(chartserver.ConfigMapChart("demo", "1.1.0"))
	f.pass(time.Second)
	f.edit(func(r *v1alpha1.OmniHelmRelease) {
		r.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
	})
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade)

	if message := f.want(v1alpha1.ConditionChartFetched, yes, v1alpha1.ReasonChartFound); !strings.Contains(message, "chart demo 1.1.0") {
		t.Error(message)
	}
}

// A controller that has no worker tries again with growing pauses, and counts no failure.
func TestNoWorkerIsNotTheChartsFault(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.Retries = new(int32(0)) })
	f.cluster.refuse = &helm.Error{Reason: helm.ReasonUnavailable, Message: "charts cannot be rendered now"}

	for range 4 {
		f.settle()
		f.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonError)
		f.pass(5 * time.Minute)
	}

	f.cluster.refuse = nil
	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
}

func TestAFailedUpgradeIsRolledBackAtOnce(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.RollbackOnFailure, r.Spec.Retries = new(true), new(int32(0)) })
	f.settle()
	f.cluster.fail = &helm.Error{Reason: helm.ReasonFailed, Message: "no"}
	f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Values = &v1alpha1.FreeForm{Raw: []byte(`{"a":1}`)} })
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade, helm.ActionRollback)
	f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonActionFailed)
}

func TestTests(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.Test.Enable = true })
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionTest)
	f.want(v1alpha1.ConditionTested, yes, v1alpha1.ReasonTestsPassed)

	f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.DisableHooks = true })
	f.run() // writes what it will attempt
	f.run()
	f.wantActions(helm.ActionInstall, helm.ActionTest, helm.ActionUpgrade)
	f.cluster.fail = &helm.Error{Reason: helm.ReasonFailed, Message: "the test says no"}
	f.settle()

	if message := f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonTestsFailed); !strings.Contains(message, "the test says no") {
		t.Error(message)
	}

	f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Test.IgnoreFailures = true })
	f.settle()
	f.want(v1alpha1.ConditionTested, no, v1alpha1.ReasonTestsFailed)
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonTestsFailed)
}

func TestDeletion(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*fixture)
		actions []helm.Action
		event   string
	}{
		"uninstalled": {func(*fixture) {}, []helm.Action{helm.ActionInstall, helm.ActionUninstall}, "UninstallSucceeded"},
		"orphan": {func(f *fixture) {
			f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.DeletionPolicy = v1alpha1.ReleaseOrphan })
		}, []helm.Action{helm.ActionInstall}, "LeftBehind"},
		"cluster destroyed": {func(f *fixture) {
			f.access.cleanup = clusteraccess.Cleanup{Action: clusteraccess.ActionLetGo, Why: "destroyed"}
		}, []helm.Action{helm.ActionInstall}, "destroyed"},
		"taken by another": {func(f *fixture) { f.cluster.revisions[0].Owner = "another" }, []helm.Action{helm.ActionInstall}, "not this object's"},
		"gone already":     {func(f *fixture) { f.cluster.revisions = nil }, []helm.Action{helm.ActionInstall}, ""},
		"out of reach for long": {func(f *fixture) {
			f.cluster.lost = &helm.Error{Reason: helm.ReasonUnreachable, Message: "no route"}
			f.clock = time.Now().Add(2 * time.Hour)
		}, []helm.Action{helm.ActionInstall}, "no route"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.settle()
			test.prepare(f)

			if err := f.client.Delete(t.Context(), f.get()); err != nil {
				t.Fatal(err)
			}

			f.settle()

			if err := f.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "app"}, &v1alpha1.OmniHelmRelease{}); !apierrors.IsNotFound(err) {
				t.Fatalf("the object is there: %v", err)
			}

			f.wantActions(test.actions...)

			if text := f.said(); !strings.Contains(text, test.event) {
				t.Errorf("events: %s", text)
			}
		})
	}
}

func TestSuspended(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.Suspend = true })
	f.run()
	f.run()
	f.wantActions()
	f.want(v1alpha1.ConditionSuspended, yes, v1alpha1.ReasonSuspended)
	f.want(v1alpha1.ConditionReady, unknown, v1alpha1.ReasonSuspended)
}

func TestDependencies(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.DependsOn = []v1alpha1.LocalObjectReference{{Name: "other"}} })
	f.run()

	if message := f.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonDependencyNotReady); !strings.Contains(message, `"other"`) {
		t.Error(message)
	}

	f.add("other", func(r *v1alpha1.OmniHelmRelease) { r.Spec.DependsOn = []v1alpha1.LocalObjectReference{{Name: "third"}} })
	f.add("third", func(r *v1alpha1.OmniHelmRelease) { r.Spec.DependsOn = []v1alpha1.LocalObjectReference{{Name: "app"}} })
	f.run()

	if message := f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonDependencyCycle); !strings.Contains(message, "app -> other -> third -> app") {
		t.Error(message)
	}

	f.wantActions()
}

func TestJobFailures(t *testing.T) {
	failed := func(reason helm.Reason) error { return &helm.Error{Reason: reason, Message: "x"} }

	for name, test := range map[string]struct {
		job  job
		want int
	}{
		"installed":         {job{action: helm.ActionInstall, before: 2}, 0},
		"rolled back":       {job{action: helm.ActionRollback, before: 2}, 2},
		"failed":            {job{action: helm.ActionUpgrade, before: 2, err: failed(helm.ReasonFailed)}, 3},
		"too slow":          {job{action: helm.ActionUpgrade, before: 2, err: failed(helm.ReasonTimeout)}, 3},
		"stopped":           {job{action: helm.ActionUpgrade, before: 2, err: failed(helm.ReasonInterrupted)}, 2},
		"cluster away":      {job{action: helm.ActionUpgrade, before: 2, err: failed(helm.ReasonUnreachable)}, 2},
		"no chart":          {job{action: helm.ActionUpgrade, before: 2, err: errors.New("x")}, 2},
		"failed test":       {job{action: helm.ActionTest, before: 0, err: failed(helm.ReasonFailed)}, 0},
		"failed correction": {job{action: actionCorrect, before: 0, err: failed(helm.ReasonFailed)}, 0},
	} {
		if got := test.job.failures(); got != test.want {
			t.Errorf("%s: %d failures, want %d", name, got, test.want)
		}
	}
}

func TestWhoseARelease(t *testing.T) {
	for name, test := range map[string]struct {
		claim claim
		want  string
	}{
		"none":                          {claim{uid: "a"}, ""},
		"ours":                          {claim{uid: "a", owner: "a", exists: true, known: true}, ""},
		"by hand":                       {claim{uid: "a", exists: true}, v1alpha1.ReasonForeignTarget},
		"by hand, taken":                {claim{uid: "a", exists: true, take: true}, ""},
		"another's":                     {claim{uid: "a", owner: "b", exists: true}, v1alpha1.ReasonConflict},
		"another's who lives, taken":    {claim{uid: "a", owner: "b", exists: true, take: true, ownerName: "ns/b"}, v1alpha1.ReasonConflict},
		"another's who is gone, taken":  {claim{uid: "a", owner: "b", exists: true, take: true}, ""},
		"ours once, another's since":    {claim{uid: "a", owner: "b", exists: true, take: true, known: true}, v1alpha1.ReasonConflict},
		"in another hub":                {claim{uid: "a", owner: "a", hub: "x", exists: true, known: true}, v1alpha1.ReasonOwnedByOtherHub},
		"in another hub, taken":         {claim{uid: "a", owner: "a", hub: "x", exists: true, take: true}, v1alpha1.ReasonOwnedByOtherHub},
		"in another hub, uninstalled":   {claim{uid: "a", owner: "a", hub: "x"}, v1alpha1.ReasonOwnedByOtherHub},
		"in the previous hub":           {claim{uid: "a", owner: "a", hub: "x", hubs: hubs.Hubs{Own: "y", Previous: "x"}, exists: true, known: true}, ""},
		"another's in another hub":      {claim{uid: "a", owner: "b", hub: "x", exists: true}, v1alpha1.ReasonConflict},
		"another's there, taken":        {claim{uid: "a", owner: "b", hub: "x", exists: true, take: true}, ""},
		"uninstalled, history was kept": {claim{uid: "a", owner: "b"}, ""},
	} {
		reason, why := test.claim.refused("ns/app")
		if reason != test.want || (why == "") != (reason == "") || why != "" && !strings.Contains(why, "ns/app") {
			t.Errorf("%s: %s %q, want %q", name, reason, why, test.want)
		}
	}
}

// The owner is named, and one that is not to be found is not asked for.
func TestWhoseAReleaseIsSaid(t *testing.T) {
	for name, test := range map[string]struct {
		claim claim
		want  string
	}{
		"another's": {
			claim{uid: "a", owner: "b", exists: true, ownerName: "team/web"},
			"release ns/app belongs to OmniHelmRelease team/web (UID b); choose another spec.releaseName or namespace, or delete that object with deletionPolicy Orphan and set spec.takeOwnership here",
		},
		"another's who is gone": {
			claim{uid: "a", owner: "b", exists: true},
			"release ns/app belongs to an OmniHelmRelease that is not here (UID b): it was deleted, or is in another management cluster or in a namespace that this controller does not watch. " +
				"Choose another spec.releaseName or namespace, or, if the other one is gone, set spec.takeOwnership to take it over",
		},
		"ours once": {
			claim{uid: "a", owner: "b", exists: true, known: true, ownerName: "team/web"},
			"release ns/app was this object's and now belongs to OmniHelmRelease team/web (UID b); it is not taken back: two objects must not take turns. Delete one of the two with deletionPolicy Orphan",
		},
		"ours once, of one who is gone": {
			claim{uid: "a", owner: "b", exists: true, known: true},
			"release ns/app was this object's and now belongs to an OmniHelmRelease that is not here (UID b): it was deleted, or is in another management cluster or in a namespace that this controller does not watch. " +
				"It is not taken back: two objects must not take turns. If the other one is gone, delete this one with deletionPolicy Orphan and create it again with spec.takeOwnership",
		},
	} {
		if _, got := test.claim.refused("ns/app"); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, test.want)
		}
	}
}

func TestAReleaseIsTakenOver(t *testing.T) {
	for name, owner := range map[string]string{"by hand": "", "of an object that is gone": "another"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.cluster.revisions = []helm.Revision{{Number: 1, Status: helm.StatusDeployed, Owner: owner}}
			f.settle()
			f.wantActions()

			if f.get().Status.Revision != 0 {
				t.Error("the status counts a release of another as its own")
			}

			f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.TakeOwnership = true })
			f.settle()
			f.wantActions(helm.ActionUpgrade)
			f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
			f.settle()
			f.wantActions(helm.ActionUpgrade)
		})
	}
}

func TestErrorsAreDiscreet(t *testing.T) {
	merged, err := values.Merge(t.Context(), []values.Layer{{From: "x", Text: []byte("password: canary"), Secret: true}})
	if err != nil {
		t.Fatal(err)
	}

	if got := redactSecrets(&helm.Error{Reason: helm.ReasonForbidden, Message: "canary is refused"}, merged).Error(); got != "[removed] is refused" {
		t.Error(got)
	}

	if got := redactSecrets(helm.ErrRevisionGone, merged); !errors.Is(got, helm.ErrRevisionGone) {
		t.Error(got)
	}
}
