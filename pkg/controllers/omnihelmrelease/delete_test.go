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
)

// gone reports whether the object is gone.
func (b *bench) gone() bool {
	b.t.Helper()

	err := b.client.Get(b.t.Context(), client.ObjectKey{Namespace: "ns", Name: "app"}, &v1alpha1.OmniHelmRelease{})
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}

	return apierrors.IsNotFound(err)
}

// remove deletes the object, now.
func (b *bench) remove() {
	b.t.Helper()

	b.pass(time.Since(b.now()))

	if err := b.client.Delete(b.t.Context(), b.get()); err != nil {
		b.t.Fatal(err)
	}
}

// uninstalling deletes the object, in a cluster in which the uninstall does not end.
func (b *bench) uninstalling() {
	b.t.Helper()
	b.settle()
	b.cluster.hold = make(chan struct{})
	b.remove()
	b.look()

	for len(b.cluster.actions()) < 2 {
		time.Sleep(time.Millisecond)
	}
}

func TestOrphanStopsAnUninstall(t *testing.T) {
	b := newBench(t)
	b.uninstalling()
	b.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.DeletionPolicy = v1alpha1.ReleaseOrphan })
	b.wantInterrupted()
}

// The cluster begins to go while its release is uninstalled: what cannot end is not waited for.
func TestADestroyedClusterStopsAnUninstall(t *testing.T) {
	b := newBench(t)
	b.uninstalling()
	b.access.destroying, b.access.cleanup = true, clusteraccess.Cleanup{Action: clusteraccess.ActionLetGo, Why: "it goes"}
	b.wantInterrupted()
}

// wantInterrupted looks again, wants the uninstall to end at once, and the object to let go.
func (b *bench) wantInterrupted() {
	b.t.Helper()
	b.look()

	for deadline := time.Now().Add(5 * time.Second); b.r.runner.job("uid-of-app").running(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatal("the uninstall goes on")
		}
	}

	b.look()
	b.wantActions(helm.ActionInstall, helm.ActionUninstall)

	if !b.gone() || len(b.cluster.revisions) == 0 {
		b.t.Error("the object is still there, or the release is not")
	}

	if said := b.said(); !strings.Contains(said, "LeftBehind") {
		b.t.Errorf("events: %s", said)
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
			b := newBench(t)
			b.settle()
			b.access.remembering = &clusteraccess.Access{}
			b.cluster.during = func() { b.pass(test.took) }
			b.cluster.refuse = &helm.Error{Reason: helm.ReasonTimeout, Message: "still there"}
			b.remove()
			b.pass(test.late)

			begun := b.now()

			for range 1000 {
				before := len(b.cluster.actions())
				result := b.run()

				if b.gone() {
					break
				}

				// What has ended wakes the object.
				if before == len(b.cluster.actions()) {
					b.pass(result.RequeueAfter)
				}
			}

			if attempts := len(b.cluster.actions()) - 1; !b.gone() || attempts < test.attempts || b.now().Sub(begun) > test.within {
				t.Errorf("gone: %v, after %s and %d attempts; want %d within %s", b.gone(), b.now().Sub(begun), attempts, test.attempts, test.within)
			}

			if said := b.said(); !strings.Contains(said, "LeftBehind") || !strings.Contains(said, "still there") {
				t.Errorf("events: %s", said)
			}
		})
	}
}

// A person leads the object to another cluster: what it made in the former one stays, and is told of once.
func TestAReleaseIsLeftInTheFormerCluster(t *testing.T) {
	for name, lead := range map[string]func(*bench){
		"accepted": func(b *bench) { b.access.id = "another-id" },
		"accepted for its deletion": func(b *bench) {
			b.access.cleanup.Opened.ClusterID = "another-id"
			b.cluster.hold = make(chan struct{})

			if err := b.client.Delete(b.t.Context(), b.get()); err != nil {
				b.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.settle()

			if said := b.said(); strings.Contains(said, "LeftBehind") {
				t.Fatal(said)
			}

			lead(b)

			for range 3 {
				b.run()
			}

			said := b.said()
			if strings.Count(said, "Warning LeftBehind") != 1 || !strings.Contains(said, "Helm release default/app stays in cluster cluster-id: the object goes on in the cluster another-id") {
				t.Error(said)
			}

			if got := b.get().Status.ClusterID; got != "another-id" {
				t.Errorf("the status says %q", got)
			}

			if b.cluster.hold != nil {
				close(b.cluster.hold)
			}
		})
	}
}
