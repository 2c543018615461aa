package omnihelmrelease

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// A release that is left on a former hub, suspended as its OmniCluster was taken over, is deleted after its OmniCluster. The other
// hub has not rewritten the mark, and needs what runs.
func TestSuspendedReleaseInAClusterOfAnotherHubStays(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) {
		r.Spec.ClusterRef.Name, r.Spec.KubeconfigSecretRef.Name = "demo", "access"
	})
	f.settle()
	f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Suspend = true })
	f.admit(nil, true)

	parent := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(parent), parent); err != nil {
		t.Fatal(err)
	}

	parent.Status.OtherHub = "hub-2"
	if err := f.client.Update(t.Context(), parent); err != nil {
		t.Fatal(err)
	}

	f.run()

	if got := f.get().Status.OtherHub; got != "hub-2" {
		t.Fatalf("status.otherHub %q", got)
	}

	if err := f.client.Delete(t.Context(), parent); err != nil {
		t.Fatal(err)
	}

	f.run()
	f.remove()
	f.settle()

	if told := f.said(); !f.gone() || !strings.Contains(told, "LeftBehind") || !strings.Contains(told, "hub-2") {
		t.Errorf("gone: %t, events: %s", f.gone(), told)
	}

	f.wantActions(helm.ActionInstall)
}

// The other hub has uninstalled a release since the snapshot that was restored on this one. Nothing in the workload cluster says so, and
// Omni, which says whose the cluster is, has not been read here: the release is not installed again.
func TestReleaseThatTheOtherHubRemovedIsNotInstalledAgain(t *testing.T) {
	f, asked := newRestored(t)
	f.seenBy("hub-2")
	f.cluster.revisions = nil

	for range 3 {
		f.settle()
	}

	if message := f.want(v1alpha1.ConditionConnected, no, v1alpha1.ReasonClusterNotInOmni); !strings.Contains(message, "another hub, hub-2 (this hub is hub-1)") {
		t.Error(message)
	}

	if asked.Load() != 0 {
		t.Errorf("%d requests to the workload cluster", asked.Load())
	}

	f.wantActions(helm.ActionInstall)

	// This hub has seen that the cluster is its own.
	f.seenBy(thisHub)
	f.owners.Note(f.parent())

	await.Until(t, "the install is begun again", func() bool { f.settle(); return len(f.cluster.actions()) >= 2 })

	f.wantActions(helm.ActionInstall, helm.ActionInstall)
}

// A release that was restored together with its OmniCluster is deleted after it, and this hub has never seen in Omni whose the cluster is.
// The mark on the release may be this hub's, from before the other hub took the cluster over, and that hub needs what runs.
func TestReleaseInAClusterThatThisHubHasNotSeenStays(t *testing.T) {
	f, asked := newRestored(t)
	f.seenBy("hub-2")
	f.run()

	if got := f.get().Status.OtherHub; got != "hub-2" {
		t.Errorf("status.otherHub %q", got)
	}

	if err := f.client.Delete(t.Context(), &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}); err != nil {
		t.Fatal(err)
	}

	f.remove()

	await.Until(t, "the object goes", func() bool { f.settle(); return f.gone() })

	if told := f.said(); !f.gone() || !strings.Contains(told, "LeftBehind") || !strings.Contains(told, "by another hub in Omni, hub-2 (this hub is hub-1)") {
		t.Errorf("gone: %t, events: %s", f.gone(), told)
	}

	if asked.Load() != 0 {
		t.Errorf("%d requests to the workload cluster", asked.Load())
	}

	f.wantActions(helm.ActionInstall)
}

// This hub comes back after another one took its clusters over and uninstalled the release. Its own status is from before, and nothing in
// the workload cluster says what happened: it installs nothing again before this process has seen in Omni whose the cluster is.
func TestReleaseThatIsGoneWaitsForOmni(t *testing.T) {
	for name, left := range map[string][]helm.Revision{
		"uninstalled":                   nil,
		"uninstalled, with its history": {{Number: 1, Status: helm.StatusUninstalled, Owner: "uid-of-app", Hub: thisHub}},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newRestored(t)
			f.seenBy(thisHub)
			f.opens()

			revision := f.get().Status.Revision
			f.cluster.revisions = left
			f.settle()

			message := f.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonClusterNotInOmni)
			if !strings.Contains(message, "release default/app was made by this object and is gone") {
				t.Error(message)
			}

			before := f.get()
			f.pass(time.Hour)
			f.settle()

			if after := f.get(); after.ResourceVersion != before.ResourceVersion || after.Status.Revision != revision {
				t.Errorf("the status was written: %+v", after.Status)
			}

			// Also after an edit, and by another process.
			f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Values = &v1alpha1.FreeForm{Raw: []byte(`{"a":1}`)} })
			f.settle()

			access := f.r.access
			f.restart()
			f.r.access = access
			f.settle()
			f.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonClusterNotInOmni)
			f.wantActions(helm.ActionInstall)

			f.owners.Note(f.parent())
			f.settle()
			f.settle()
			f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
			f.wantActions(helm.ActionInstall, helm.ActionInstall)
		})
	}
}

// What is there goes on without Omni, and so does a first install, also one that fails at first.
func TestWhatDoesNotWaitForOmni(t *testing.T) {
	f, _ := newRestored(t)
	f.seenBy(thisHub)
	f.opens()
	f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Values = &v1alpha1.FreeForm{Raw: []byte(`{"a":1}`)} })
	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade)

	// As of an object whose first install left no revision.
	release := f.get()
	release.Status.Revision, release.Status.ChartDigest = 0, ""

	if err := f.client.Status().Update(t.Context(), release); err != nil {
		t.Fatal(err)
	}

	f.cluster.revisions = nil
	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade, helm.ActionInstall)
}

// Another hub takes the cluster over while an action of this one is at work. It ends in order, soon, because the other hub goes on with
// what it finds half done; also that of a suspended release, and an uninstall.
func TestTakeoverEndsWhatIsUnderWay(t *testing.T) {
	for name, test := range map[string]struct {
		begin, then func(*fixture)
		action      helm.Action
	}{
		"upgrade": {(*fixture).upgrade, func(*fixture) {}, helm.ActionUpgrade},
		"upgrade, suspended": {
			(*fixture).upgrade, func(f *fixture) { f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Suspend = true }) }, helm.ActionUpgrade,
		},
		"uninstall": {(*fixture).remove, func(*fixture) {}, helm.ActionUninstall},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newRestored(t)
			f.seenBy(thisHub)
			f.opens()
			f.cluster.hold, f.cluster.ends = make(chan struct{}), make(chan struct{})
			test.begin(f)

			await.Until(t, "the action begins", func() bool { f.look(); return len(f.cluster.actions()) >= 2 })

			test.then(f)

			parent := f.parent()
			parent.Status.OtherHub = "hub-2"

			if err := f.client.Update(t.Context(), parent); err != nil {
				t.Fatal(err)
			}

			f.look()

			if name == "upgrade" {
				message := f.want(v1alpha1.ConditionConnected, no, v1alpha1.ReasonOwnedByOtherHub)
				if !strings.HasPrefix(message, "upgrade of release default/app, which was begun at ") || !strings.Contains(message, "is being ended; beside that nothing is done in the workload cluster: ") {
					t.Error(message)
				}
			}

			close(f.cluster.ends)

			f.waitUntilEnded()

			f.look()

			if name == "upgrade" {
				if message := f.want(v1alpha1.ConditionConnected, no, v1alpha1.ReasonOwnedByOtherHub); !strings.HasPrefix(message, "nothing is done in the workload cluster: ") {
					t.Error(message)
				}

				before := f.get().ResourceVersion
				if f.look(); f.get().ResourceVersion != before {
					t.Error("a second run wrote the status")
				}
			}

			f.wantActions(helm.ActionInstall, test.action)

			if len(f.cluster.revisions) != 1 {
				t.Errorf("revisions %+v", f.cluster.revisions)
			}
		})
	}
}

// A revision without a result of the hub that was there before may be at work: its process has the time to end it that one of this hub
// would have.
func TestATakeoverWaitsForWhatIsUnderWay(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.cluster.revisions[0].Hub, f.cluster.revisions[0].Process = "hub-2", "theirs"
	f.cluster.revisions[0].Status = helm.StatusPendingUpgrade
	f.access.hubs = hubs.Hubs{Own: thisHub, Previous: "hub-2"}
	f.pass(time.Hour)
	f.settle()

	if message := f.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonLocked); !strings.Contains(message, "may still be at work") {
		t.Error(message)
	}

	f.wantActions(helm.ActionInstall)

	// Our clock jumps ahead, and an API server says so: that is no time that has passed.
	f.pass(25 * time.Hour)
	f.r.options.Skew = func() skew.Difference { return skew.Difference{Server: "kube-apiserver", Ahead: -25 * time.Hour} }
	f.settle()
	f.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonLocked)
	f.wantActions(helm.ActionInstall)
	f.pass(-25 * time.Hour)
	f.r.options.Skew = nil

	f.pass(30 * time.Second)
	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
}

// So it has if the object is deleted on the new hub: an uninstall beside its action would leave what that makes.
func TestADeletionAfterATakeoverWaitsForWhatIsUnderWay(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.remove()
	f.cluster.revisions[0].Hub, f.cluster.revisions[0].Process = "hub-2", "theirs"
	f.cluster.revisions[0].Status, f.cluster.revisions[0].Modified = helm.StatusPendingUpgrade, f.now().Add(-time.Hour)
	f.access.hubs = hubs.Hubs{Own: thisHub, Previous: "hub-2"}
	f.access.cleanup.Opened.Hubs = f.access.hubs
	f.settle()

	f.wantActions(helm.ActionInstall)

	if message := f.want(v1alpha1.ConditionDeletionBlocked, yes, v1alpha1.ReasonLocked); !strings.Contains(message, "may still be at work") {
		t.Error(message)
	}

	f.pass(30 * time.Second)
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUninstall)

	if !f.gone() {
		t.Error("the object is there still")
	}
}

// upgrade asks for one.
func (f *fixture) upgrade() {
	f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Values = &v1alpha1.FreeForm{Raw: []byte(`{"a":1}`)} })
}

// opens waits until the workload cluster has answered.
func (f *fixture) opens() {
	f.t.Helper()

	await.Until(f.t, "the workload cluster is opened", func() bool {
		f.settle()

		return apimeta.IsStatusConditionTrue(f.get().Status.Conditions, v1alpha1.ConditionConnected)
	})
}

// parent is the OmniCluster.
func (f *fixture) parent() *v1alpha1.OmniCluster {
	f.t.Helper()

	parent := &v1alpha1.OmniCluster{}
	if err := f.client.Get(f.t.Context(), client.ObjectKey{Namespace: "ns", Name: "demo"}, parent); err != nil {
		f.t.Fatal(err)
	}

	return parent
}

// newRestored is a fixture with a release that is installed, the real access, and a workload cluster that counts what it is asked.
func newRestored(t *testing.T) (*fixture, *atomic.Int32) {
	t.Helper()

	asked := &atomic.Int32{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"cluster-id"}}`)
	}))
	t.Cleanup(server.Close)

	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) {
		r.Spec.ClusterRef.Name, r.Spec.KubeconfigSecretRef.Name = "demo", "access"
	})
	f.settle()
	f.admit(kubeconfigFor(server, "token: t"), true)

	return f, asked
}

// seenBy says which hub last saw the cluster in Omni.
func (f *fixture) seenBy(hub string) {
	f.t.Helper()

	parent := f.parent()
	parent.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionConnectionReady, Status: yes}}
	parent.Status.HubID = hub

	if err := f.client.Update(f.t.Context(), parent); err != nil {
		f.t.Fatal(err)
	}
}
