package omnicluster

import (
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
)

// loseOmni has Omni go away, and waits until the local copy knows it. Before, the copy was complete for a while, if that is
// wanted: only then the outage may be a restart.
func (f *fixture) loseOmni(afterAWhile bool) {
	f.t.Helper()

	lease, open := f.pool.Get("uid-connection")
	if !open {
		f.t.Fatal("no session")
	}
	defer lease.Release()

	if afterAWhile {
		time.Sleep(time.Until(lease.Health().Since.Add(mirror.OutageGrace)))
	}

	f.omni.GoDown()
	f.eventually("the loss of the watches", func() string {
		if lease.Health().Synced {
			return "the copy is current"
		}

		return ""
	})
}

// A restart of Omni changes no condition and writes nothing, neither to the API nor, from facts that may be old, to Omni.
func TestShortOutageIsNotShown(t *testing.T) {
	t.Parallel()

	f := running(t)
	ready := *apimeta.FindStatusCondition(f.get().Status.Conditions, "Ready")
	writes, remote := f.writes, f.remoteWrites()

	f.delete(newWorkers("w", machineClass, 2))
	f.create(newWorkers("w", machineClass, 3))
	f.loseOmni(true)

	for range 3 {
		if result := f.run(); result.RequeueAfter <= 0 || result.RequeueAfter > time.Minute {
			t.Errorf("looked at again after %s", result.RequeueAfter)
		}
	}

	if f.writes != writes || f.remoteWrites() != remote {
		t.Errorf("%d writes to the API and %d to Omni: %q", f.writes-writes, f.remoteWrites()-remote, shown(f.get()))
	}

	if found := apimeta.FindStatusCondition(f.get().Status.Conditions, "Ready"); *found != ready {
		t.Errorf("Ready was %+v, and is %+v", ready, *found)
	}

	f.advance(time.Minute)

	cluster := f.until("ConnectionReady", metav1.ConditionFalse, "MirrorNotSynced")
	says(t, message(cluster, "Ready"), "nothing newer than 20", "is known")
}

// Who asks for something meanwhile is answered at once.
func TestOutageIsShownToWhoAsks(t *testing.T) {
	t.Parallel()

	for name, ask := range map[string]func(*fixture){
		"a change": func(f *fixture) {
			f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"a": "b"} })
		},
		"a request": func(f *fixture) {
			f.edit(func(o *v1alpha1.OmniCluster) {
				o.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
				o.Generation--
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := running(t)
			f.loseOmni(true)
			ask(f)
			f.run()

			if found := apimeta.FindStatusCondition(f.get().Status.Conditions, "ConnectionReady"); found.Reason != "MirrorNotSynced" {
				t.Errorf("%+v", *found)
			}
		})
	}
}

// A deletion counts how long Omni is away from the beginning.
func TestDeletionIsToldOfAnOutageAtOnce(t *testing.T) {
	t.Parallel()

	f := running(t)
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.Orphan = true })
	f.run()
	f.loseOmni(true)
	f.delete(newCluster())
	f.run()
	says(t, message(f.get(), "Ready"), `OmniConnection "omni"`)
}

func TestOmniGoesAway(t *testing.T) {
	f := running(t)
	f.loseOmni(false)
	f.advance(time.Minute)
	f.until("ConnectionReady", metav1.ConditionFalse, "MirrorNotSynced")

	if f.get().Status.Omni == nil {
		t.Error("what Omni said last is not shown any more")
	}

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"a": "b"} })

	if err := f.omni.ComeBack(); err != nil {
		t.Fatal(err)
	}

	f.until("Ready", metav1.ConditionTrue, "Running")

	if f.view().Labels["a"] != "b" {
		t.Error("the change was lost")
	}
}
