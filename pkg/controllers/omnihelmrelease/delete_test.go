package omnihelmrelease

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// gone reports whether the object is gone.
func (f *fixture) gone() bool {
	f.t.Helper()

	err := f.client.Get(f.t.Context(), client.ObjectKey{Namespace: "ns", Name: "app"}, &v1alpha1.OmniHelmRelease{})
	if client.IgnoreNotFound(err) != nil {
		f.t.Fatal(err)
	}

	return apierrors.IsNotFound(err)
}

// remove deletes the object, now.
func (f *fixture) remove() {
	f.t.Helper()

	f.pass(time.Since(f.now()))

	if err := f.client.Delete(f.t.Context(), f.get()); err != nil {
		f.t.Fatal(err)
	}
}

// uninstalling deletes the object, in a cluster in which the uninstall does not end.
func (f *fixture) uninstalling() {
	f.t.Helper()
	f.settle()
	f.cluster.hold = make(chan struct{})
	f.remove()
	f.look()

	for len(f.cluster.actions()) < 2 {
		time.Sleep(time.Millisecond)
	}
}

func TestOrphanStopsAnUninstall(t *testing.T) {
	f := newFixture(t)
	f.uninstalling()
	f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.DeletionPolicy = v1alpha1.ReleaseOrphan })
	f.wantInterrupted()
}

// The cluster begins to go while its release is uninstalled: what cannot end is not waited for.
func TestADestroyedClusterStopsAnUninstall(t *testing.T) {
	f := newFixture(t)
	f.uninstalling()
	f.access.destroying, f.access.cleanup = true, clusteraccess.Cleanup{Action: clusteraccess.ActionLetGo, Why: "it goes"}
	f.wantInterrupted()
}

// wantInterrupted looks again, wants the uninstall to end at once, and the object to let go.
func (f *fixture) wantInterrupted() {
	f.t.Helper()
	f.look()

	f.waitUntilEnded()
	f.look()
	f.wantActions(helm.ActionInstall, helm.ActionUninstall)

	if !f.gone() || len(f.cluster.revisions) == 0 {
		f.t.Error("the object is still there, or the release is not")
	}

	if said := f.said(); !strings.Contains(said, "LeftBehind") {
		f.t.Errorf("events: %s", said)
	}
}

// An uninstall that fails again and again is given up after an hour, however long
// each attempt takes; one attempt that failed for a moment is not the end.
func TestAnUninstallIsGivenUp(t *testing.T) {
	for name, test := range map[string]struct {
		took     time.Duration // each attempt
		late     time.Duration // how long the controller was down first
		attempts int           // at least
		within   time.Duration // of the deletion, or of the start of the controller
	}{
		"quick attempts":               {time.Second, 0, 10, time.Hour + time.Minute},
		"slow attempts":                {11 * time.Minute, 0, 5, time.Hour + 11*time.Minute},
		"attempts of an hour":          {time.Hour, 0, 1, time.Hour + time.Minute},
		"quick attempts, a late start": {time.Second, 2 * time.Hour, 3, 3 * time.Minute},
		"slow attempts, a late start":  {11 * time.Minute, 2 * time.Hour, 1, 12 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.settle()
			f.access.remembering = &clusteraccess.Access{}
			f.cluster.during = func() { f.pass(test.took) }
			f.cluster.refuse = &helm.Error{Reason: helm.ReasonTimeout, Message: "still there"}
			f.remove()
			f.pass(test.late)

			begun := f.now()

			for range 1000 {
				before := len(f.cluster.actions())
				result := f.run()

				if f.gone() {
					break
				}

				// What has ended wakes the object.
				if before == len(f.cluster.actions()) {
					f.pass(result.RequeueAfter)
				}
			}

			if attempts := len(f.cluster.actions()) - 1; !f.gone() || attempts < test.attempts || f.now().Sub(begun) > test.within {
				t.Errorf("gone: %v, after %s and %d attempts; want %d within %s", f.gone(), f.now().Sub(begun), attempts, test.attempts, test.within)
			}

			if said := f.said(); !strings.Contains(said, "LeftBehind") || !strings.Contains(said, "still there") {
				t.Errorf("events: %s", said)
			}
		})
	}
}

// A person leads the object to another cluster: what it made in the former one stays, and is told of once.
func TestAReleaseIsLeftInTheFormerCluster(t *testing.T) {
	for name, lead := range map[string]func(*fixture){
		"accepted": func(f *fixture) { f.access.id = "another-id" },
		"accepted for its deletion": func(f *fixture) {
			f.access.cleanup.Opened.ClusterID = "another-id"
			f.cluster.hold = make(chan struct{})

			if err := f.client.Delete(f.t.Context(), f.get()); err != nil {
				f.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.settle()

			if said := f.said(); strings.Contains(said, "LeftBehind") {
				t.Fatal(said)
			}

			lead(f)

			for range 3 {
				f.run()
			}

			said := f.said()
			if strings.Count(said, "Warning LeftBehind") != 1 || !strings.Contains(said, "Helm release default/app stays in cluster cluster-id: the object goes on in the cluster another-id") {
				t.Error(said)
			}

			if got := f.get().Status.ClusterID; got != "another-id" {
				t.Errorf("the status says %q", got)
			}

			if f.cluster.hold != nil {
				close(f.cluster.hold)
			}
		})
	}
}

// The status names a release before its first action. One whose action never began is not told of as one that is there.
func TestTheDeletionOfAReleaseThatWasNotBegun(t *testing.T) {
	const stays, maybe = "Helm release default/app stays in the", "Helm release default/app may be left (its first action was about to begin) in the"

	waits := func(f *fixture) {
		f.cluster.room = make(chan struct{})
		f.look()
		await.Until(f.t, "an action waits for room", func() bool { f.cluster.mu.Lock(); defer f.cluster.mu.Unlock(); return f.cluster.waiting > 0 })
	}
	begins := func(f *fixture) {
		f.cluster.hold = make(chan struct{})
		f.look()
		await.Until(f.t, "an action has begun", func() bool { return f.r.runner.job("uid-of-app").changing })
	}

	for name, test := range map[string]struct {
		prepare func(*fixture)
		policy  v1alpha1.ReleaseDeletionPolicy
		want    string
	}{
		"it waits for memory":               {waits, v1alpha1.ReleaseOrphan, maybe},
		"it has begun":                      {begins, v1alpha1.ReleaseOrphan, stays},
		"another process may have begun it": {func(f *fixture) { begins(f); f.restart() }, v1alpha1.ReleaseOrphan, maybe},
		"its cluster is away": {func(f *fixture) {
			f.cluster.lost = &helm.Error{Reason: helm.ReasonUnreachable, Message: "no route"}
			f.clock = time.Now().Add(2 * time.Hour)
		}, v1alpha1.ReleaseUninstall, maybe},
		"somebody else has one of its name": {func(f *fixture) {
			f.cluster.revisions = []helm.Revision{{Number: 1, Status: helm.StatusDeployed, Owner: "another"}}
		}, v1alpha1.ReleaseUninstall, stays},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.run() // writes what it will attempt
			test.prepare(f)
			f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.DeletionPolicy = test.policy })

			if err := f.client.Delete(t.Context(), f.get()); err != nil {
				t.Fatal(err)
			}

			f.look()
			f.waitUntilEnded()

			if !f.gone() {
				f.look()
			}

			if said := f.said(); !f.gone() || strings.Count(said, "LeftBehind") != 1 || !strings.Contains(said, test.want) {
				t.Errorf("gone: %t, events: %s", f.gone(), said)
			}
		})
	}
}
