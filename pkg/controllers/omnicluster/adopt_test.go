package omnicluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// handmade is a bench with a cluster in Omni that people made: a worker set with
// one machine, and a patch. The object wants to adopt it, but for that set.
func handmade(t *testing.T, edit func(*v1alpha1.OmniCluster)) *bench {
	t.Helper()

	cluster := newCluster()
	cluster.Spec.Adopt = true

	if edit != nil {
		edit(cluster)
	}

	b := newBench(t, cluster)

	if err := omnisim.CreateForeignCluster(t.Context(), b.omni.State(), "demo", "1.35.1", "1.13.3"); err != nil {
		t.Fatal(err)
	}

	// Omni gives a new cluster its ID a moment later; one that is to be adopted has had it for long.
	b.eventually("the ID of the cluster", func() string {
		if _, err := safe.StateGet[*omnires.ClusterUUID](t.Context(), b.omni.State(), omnires.NewClusterUUID("demo").Metadata()); err != nil {
			return err.Error()
		}

		return ""
	})

	b.setByHand("theirs", b.machines[1])
	b.patchByHand("500-theirs")
	b.create(newControlPlane("cp", b.machines[0]), newWorkers("w", machineClass, 1))

	// A local copy that has all of that from the beginning.
	b.pool.Forget("uid-connection")
	b.connect()

	return b
}

// untilKnown reconciles until the object knows which cluster it has taken over and waits for approval of the rest.
func (b *bench) untilKnown() *v1alpha1.OmniCluster {
	b.t.Helper()
	b.eventually("the ID of the cluster", func() string {
		if b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval").Status.OmniClusterID == "" {
			return "it is not known"
		}

		return ""
	})

	return b.get()
}

func TestAdopt(t *testing.T) {
	b := handmade(t, nil)
	cluster := b.untilKnown()
	says(t, message(cluster, "Ready"), `MachineSet "demo-theirs"`, `ConfigPatch "500-theirs"`, "the cluster is being adopted", cluster.Status.Plan.Hash)

	if !cluster.Status.Adopting || cluster.Status.OmniClusterID == "" || cluster.Status.Plan.Destroys != 2 {
		t.Errorf("%+v", cluster.Status)
	}

	if !b.hasEvent("Adopted", `"demo"`, "has no owner") {
		t.Errorf("no event of the adoption: %q", b.seen)
	}

	view := b.view()
	if view.Annotations[v1alpha1.MarkOwnerUID] != "uid-demo" || view.Machines["demo-theirs"] != 1 || view.Machines["demo-control-planes"] != 1 || len(view.Patches) != 1 {
		t.Errorf("Omni has %+v", view)
	}

	b.advance(10 * settleTime)
	b.restart()
	b.quiet()
	b.wantTornDown()

	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = cluster.Status.Plan.Hash })
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.quiet()

	if cluster = b.get(); cluster.Status.Adopting || len(b.view().Patches) != 0 || len(cluster.Status.AppliedMachineSets) != 2 {
		t.Errorf("%+v, Omni has %+v", cluster.Status, b.view())
	}

	// From now on a patch made by hand is drift.
	b.patchByHand("500-later")
	b.eventually("the patch to go", func() string {
		b.run()

		return map[bool]string{true: "it is still there"}[len(b.view().Patches) > 0]
	})
	b.quiet()
}

// The first write is the mark, and it comes after the word in the status.
func TestAdoptWritesTheStatusFirst(t *testing.T) {
	b := handmade(t, nil)
	b.eventually("the reservation", func() string {
		b.run()

		return map[bool]string{false: "not adopting"}[b.get().Status.Adopting]
	})

	if got := b.remoteWrites(); got != 0 {
		t.Errorf("%d writes to Omni before the status", got)
	}

	b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")

	if first := b.omni.Writes()[0]; first.ID != "demo" || first.Verb != "Update" {
		t.Errorf("the first write is %+v", first)
	}
}

// Observe and suspend show the plan and write nothing, also not that anything is adopted.
func TestAdoptIsOnlyShown(t *testing.T) {
	for name, edit := range map[string]func(*v1alpha1.OmniCluster){
		"observe": func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve },
		"suspend": func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = true },
	} {
		t.Run(name, func(t *testing.T) {
			b := handmade(t, edit)
			b.eventually("the local copy to show the cluster", func() string {
				b.run()

				return map[bool]string{false: message(b.get(), "Planned")}[strings.Contains(message(b.get(), "Planned"), "is taken over (spec.adopt)")]
			})
			b.advance(10 * settleTime)
			b.quiet()

			if cluster := b.get(); cluster.Status.Adopting || cluster.Status.OmniClusterID != "" || cluster.Status.Plan.Destroys != 2 || b.remoteWrites() != 0 {
				t.Errorf("%+v, %d writes", cluster.Status, b.remoteWrites())
			}

			// Deleting lets go of what was never taken.
			b.delete(newCluster())
			b.untilGone()

			if !b.view().Exists || b.remoteWrites() != 0 {
				t.Error("the foreign cluster was touched")
			}
		})
	}
}

// A locked cluster is not taken over.
func TestAdoptLocked(t *testing.T) {
	b := handmade(t, nil)
	if err := omnisim.AnnotateCluster(t.Context(), b.omni.State(), "demo", "omni.sidero.dev/cluster-locked", ""); err != nil {
		t.Fatal(err)
	}

	b.until("Stalled", metav1.ConditionTrue, "RemoteLocked")
	b.quiet()

	if got := b.remoteWrites(); got != 0 {
		t.Errorf("%d writes to Omni", got)
	}
}

// Another object's cluster can be taken; that object then does not take it back.
func TestAdoptFromAnotherObject(t *testing.T) {
	b := handmade(t, nil)

	for key, value := range map[string]string{
		v1alpha1.MarkOwnerUID: "uid-other", v1alpha1.MarkOwnerNamespace: "elsewhere", v1alpha1.MarkOwnerName: "boss",
	} {
		if err := omnisim.AnnotateCluster(t.Context(), b.omni.State(), "demo", key, value); err != nil {
			t.Fatal(err)
		}
	}

	b.untilKnown()

	if !b.hasEvent("Adopted", "from OmniCluster elsewhere/boss (UID uid-other)") {
		t.Errorf("no event of whose it was: %q", b.seen)
	}

	// The other takes it: adopt is not honoured twice.
	if err := omnisim.AnnotateCluster(t.Context(), b.omni.State(), "demo", v1alpha1.MarkOwnerUID, "uid-other"); err != nil {
		t.Fatal(err)
	}

	writes := b.remoteWrites()

	b.until("Stalled", metav1.ConditionTrue, "OwnershipLost")
	b.restart()
	b.quiet()

	if got := b.remoteWrites(); got != writes {
		t.Errorf("%d more writes to Omni", got-writes)
	}
}

// The process dies at every write of the status in turn, and once more at each
// of those after it: nothing is ever destroyed that nobody approved.
func TestAdoptSurvivesCrashes(t *testing.T) {
	for fails := range 4 {
		b := handmade(t, nil)
		patches := 0
		dying := interceptor.NewClient(b.client, interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if patches++; patches > fails && patches <= fails+3 {
					return errors.New("the process died")
				}

				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		})

		b.eventually("the approval to be waited for", func() string {
			b.restart()
			b.loop = loop.New(b.reconciler.kind(), loop.Settings{Client: dying, Events: b.events})
			b.run()
			b.advance(settleTime)

			if got := b.get().Status; !got.Adopting || got.OmniClusterID == "" || patches < fails+3 && fails < 2 {
				return message(b.get(), "Ready")
			}

			return ""
		})

		b.restart()
		b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
		b.advance(10 * settleTime)
		b.quiet()
		b.wantTornDown()

		if view := b.view(); view.Machines["demo-theirs"] != 1 || len(view.Patches) != 1 {
			t.Errorf("after %d: Omni has %+v", fails, view)
		}
	}
}

// The status was wiped in the middle of an adoption.
func TestAdoptWithAWipedStatus(t *testing.T) {
	b := handmade(t, nil)
	b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")

	cluster := b.get()
	cluster.Status = v1alpha1.OmniClusterStatus{}

	if err := b.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	// Not even a run that cannot plan makes it forget.
	b.delete(newControlPlane("cp", b.machines[0]))
	b.restart()
	b.until("Assembled", metav1.ConditionFalse, "ControlPlaneMissing")
	b.create(newControlPlane("cp", b.machines[0]))
	cluster = b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	b.advance(10 * settleTime)
	b.quiet()
	b.wantTornDown()

	if !cluster.Status.Adopting || len(b.view().Patches) != 1 {
		t.Errorf("%+v, Omni has %+v", cluster.Status, b.view())
	}
}

// Somebody made a cluster of the same name in the place of ours, with our mark.
func TestReplacedCluster(t *testing.T) {
	b := running(t)
	known := b.get().Status.OmniClusterID

	cluster := b.get()
	cluster.Status.OmniClusterID = "00000000-0000-0000-0000-00000000000a"

	if err := b.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	b.delete(newWorkers("w", machineClass, 2))

	writes := b.remoteWrites()
	says(t, message(b.until("Stalled", metav1.ConditionTrue, "RemoteClusterReplaced"), "Ready"),
		known, "omni.texashpc.com/recreate: 00000000-0000-0000-0000-00000000000a")
	b.advance(10 * settleTime)
	b.quiet()

	if got := b.get().Status.OmniClusterID; got != "00000000-0000-0000-0000-00000000000a" || b.remoteWrites() != writes {
		t.Errorf("ID %s, %d writes to Omni", got, b.remoteWrites()-writes)
	}

	// Allowed: it is ours then, but nobody asked for what is in it to go.
	b.edit(func(o *v1alpha1.OmniCluster) {
		o.Annotations = map[string]string{v1alpha1.AnnotationRecreate: "00000000-0000-0000-0000-00000000000a"}
	})
	b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	b.quiet()
	b.wantTornDown()

	if got := b.get().Status.OmniClusterID; got != known {
		t.Errorf("ID %s", got)
	}
}

func TestReplacedClusterThenDeleted(t *testing.T) {
	b := running(t)
	cluster := b.get()
	cluster.Status.OmniClusterID = "gone"

	if err := b.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	b.delete(newCluster())
	says(t, message(b.until("DeletionBlocked", metav1.ConditionTrue, "RemoteClusterReplaced"), "DeletionBlocked"), "recreate: gone", "spec.deletePolicy.orphan")
	b.advance(time.Hour)
	b.quiet()
	b.wantTornDown()

	b.edit(func(o *v1alpha1.OmniCluster) { o.Annotations = map[string]string{v1alpha1.AnnotationRecreate: "gone"} })
	b.untilGone()

	if b.view().Exists {
		t.Error("the cluster is still there")
	}
}

// An Omni that lacks the cluster for a moment, because it was restored or is another one, ends no adoption.
func TestAdoptionOutlastsAnAbsence(t *testing.T) {
	known, unknown := consent.Claim{KnownID: "id-1"}, consent.Claim{}
	back := known
	back.Live = omni.Live{Exists: true, UUID: "id-1"}

	for name, test := range map[string]struct {
		claim consent.Claim
		plan  *plan.Plan
		want  bool
	}{
		"it is gone":                {known, nil, true},
		"it is back":                {back, nil, true},
		"it never had an ID":        {unknown, nil, false},
		"back, and nothing is left": {back, &plan.Plan{}, false},
	} {
		cluster := newCluster()
		cluster.Status.Adopting = true

		s := &scope{cluster: cluster, seen: &seen{}, plan: test.plan}
		if reportAdoption(s, test.claim); cluster.Status.Adopting != test.want {
			t.Errorf("%s: adopting is %v", name, cluster.Status.Adopting)
		}
	}
}
