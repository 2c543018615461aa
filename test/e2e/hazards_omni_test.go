package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// killRounds is how often the controller is killed in each part of a cluster's life.
const killRounds = 2

// A lock set in Omni stops a deletion until it is taken off there.
func TestLockedInOmniThenDeleted(t *testing.T) {
	f := newFleet(t)
	f.cluster("c")

	if err := omnisim.AnnotateCluster(t.Context(), f.omni.State(), "c", omni.ClusterLocked, ""); err != nil {
		t.Fatal(err)
	}

	f.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRemoteLocked, "unlock")
	f.run("delete", "ocl", "c", "--wait=false")
	f.says("c", v1alpha1.ConditionDeletionBlocked, metav1.ConditionTrue, v1alpha1.ReasonRemoteLocked, "unlock", "orphan")
	f.unchanged("c")

	if err := omnisim.RemoveAnnotation(t.Context(), f.omni.State(), "c", omni.ClusterLocked); err != nil {
		t.Fatal(err)
	}

	f.waitGone("ocl", "c")
	f.waitRemoteGone("c")
}

// Omni forgets the cluster, as after a restore from an older backup: it is not made again, empty.
func TestOmniLostTheCluster(t *testing.T) {
	f := newFleet(t)
	f.cluster("c")
	f.removeInOmni("c")
	f.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRemoteClusterGone, v1alpha1.AnnotationRecreate)

	writes := len(f.omni.Writes())
	f.reconciled("c")

	if f.view("c").Exists || len(f.omni.Writes()) != writes {
		t.Errorf("something was made again: %+v", f.omni.Writes()[writes:])
	}

	f.run("delete", "ocl", "c", "--timeout=60s")
}

// removeInOmni destroys a cluster as somebody in Omni's UI would.
func (f *fleet) removeInOmni(name string) {
	f.t.Helper()

	st, sets := f.omni.State(), f.view(name).Machines

	// The cluster first, so that nobody plans anything for it meanwhile.
	if _, err := st.Teardown(f.t.Context(), omni.NewCluster(name).Metadata()); err != nil {
		f.t.Fatal(err)
	}

	for set := range sets {
		if err := st.TeardownAndDestroy(f.t.Context(), omni.NewMachineSet(set).Metadata()); err != nil && !state.IsNotFoundError(err) {
			f.t.Fatal(err)
		}
	}

	if err := st.TeardownAndDestroy(f.t.Context(), omni.NewCluster(name).Metadata()); err != nil && !state.IsNotFoundError(err) {
		f.t.Fatal(err)
	}

	f.waitRemoteGone(name)
}

// Omni fails in every way while a cluster is made, changed and destroyed: it ends as it should.
func TestOmniFailsInTheMiddle(t *testing.T) {
	f := newFleet(t)

	for _, fault := range []omnisim.Fault{
		{Method: "Create", Type: omni.MachineSetType, Times: 2, Code: codes.Unavailable},
		{Method: "Create", Type: omni.ClusterType, Times: 1, Code: codes.Internal},
		{Method: "Create", Type: omni.MachineSetNodeType, Times: 1, Delay: 300 * time.Millisecond, Code: codes.ResourceExhausted},
	} {
		t.Cleanup(f.omni.Inject(fault))
	}

	f.cluster("c")
	f.omni.ResetStreams()
	f.wantDestroyed()

	t.Cleanup(f.omni.Inject(omnisim.Fault{Method: "Update", Times: 2, Code: codes.Unavailable}))
	f.run("scale", "omniworkers/c-w", "--replicas=1")
	f.omni.ResetStreams()
	f.waitMachines("c", "c-w", 1)
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")

	for _, method := range []string{"Teardown", "Destroy", "Update", "TeardownAndDestroy"} {
		t.Cleanup(f.omni.Inject(omnisim.Fault{Method: method, Times: 1, Code: codes.Unavailable}))
	}

	f.run("delete", "ocl", "c", "--wait=false")
	f.omni.ResetStreams()
	f.waitGone("ocl", "c")
	f.waitRemoteGone("c")
}

// The key is revoked while a destroying change waits, and given back: it is then done, not before,
// and a deletion says what to restore.
func TestKeyRevokedInTheMiddle(t *testing.T) {
	f := newFleet(t)
	f.cluster("c")

	if err := f.omni.RevokeKey(f.key); err != nil {
		t.Fatal(err)
	}

	f.omni.ResetStreams()
	f.waitCondition("oconn", "omni", v1alpha1.ConditionReady, metav1.ConditionFalse, "")
	f.run("delete", "ocl", "c", "--wait=false")
	f.says("c", v1alpha1.ConditionReady, metav1.ConditionFalse, "", `"c"`)
	f.unchanged("c")

	key, err := f.omni.AddKey("operator", time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	f.apply(secretManifest("key", key))
	f.waitGone("ocl", "c")
	f.waitRemoteGone("c")
}

// What people add in Omni by hand: a patch is drift and goes, a machine lock stays, and under
// ConfirmDestructive a machine set with its machines waits for approval.
func TestAddedInOmniByHand(t *testing.T) {
	f := newFleet(t)
	f.apply(workersManifest("static", "c", "machines: ["+f.machines[1]+"]"))
	f.cluster("c", "  changePolicy: ConfirmDestructive")
	f.waitMachines("c", "static", 1)

	ctx, st := t.Context(), f.omni.State()
	node := omni.NewMachineSetNode(f.machines[1], omni.NewMachineSet("c-static"))

	if _, err := safe.StateUpdateWithConflicts(ctx, st, node.Metadata(), func(node *omni.MachineSetNode) error {
		node.Metadata().Annotations().Set(omni.MachineLocked, "")

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	patch := omni.NewConfigPatch("500-by-hand")
	patch.Metadata().Labels().Set(omni.LabelCluster, "c")

	if err := patch.TypedSpec().Value.SetUncompressedData([]byte("machine: {sysctls: {a: b}}")); err != nil {
		t.Fatal(err)
	}

	set := omni.NewMachineSet("c-by-hand")
	set.Metadata().Labels().Set(omni.LabelCluster, "c")
	set.Metadata().Labels().Set(omni.LabelWorkerRole, "")

	for _, made := range []resource.Resource{patch, set, omni.NewMachineSetNode(f.machines[2], set)} {
		if node, ok := made.(*omni.MachineSetNode); ok {
			node.Metadata().Labels().Set(omni.LabelCluster, "c")
		}

		if err := st.Create(ctx, made); err != nil {
			t.Fatal(err)
		}
	}

	f.says("c", v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval, "approvedPlan", `MachineSet "c-by-hand"`)
	f.wait("the patch to go", func() error {
		if patches := f.view("c").Patches; len(patches) > 0 {
			return fmt.Errorf("Omni has %v", patches)
		}

		return nil
	})
	f.waitMachines("c", "by-hand", 1)
	f.wantDestroyed("ConfigPatche 500-by-hand")

	if kept, err := safe.StateGetByID[*omni.MachineSetNode](ctx, st, f.machines[1]); err != nil {
		t.Error(err)
	} else if _, locked := kept.Metadata().Annotations().Get(omni.MachineLocked); !locked {
		t.Error("the machine lock was taken off")
	}
}

// The document of a set comes back while Omni still tears the set down: it is finished and made again.
func TestSetComesBackWhileItIsTornDown(t *testing.T) {
	f := newFleet(t)
	f.cluster("c")
	f.omni.Pause()
	f.run("delete", "ow", "c-w")
	f.wait("the teardown to be asked for", func() error {
		if got := f.destroyed(); len(got) == 0 {
			return fmt.Errorf("nothing destroyed yet")
		}

		return nil
	})
	f.apply(workersManifest("c-w", "c", classOf(pool, 2)))
	f.says("c", v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonProgressing, "c-c-w")
	f.omni.Resume()
	f.waitMachines("c", "c-w", 2)
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.wantDestroyed("MachineSet c-c-w")
}

// The controller is killed at random moments of a life: it ends as asked, with nothing else destroyed.
func TestControllerKilledAtRandomMoments(t *testing.T) {
	f := newFleet(t)

	kill := func(rounds int) {
		for range rounds {
			time.Sleep(rand.N(400 * time.Millisecond)) // the moment is the point
			stack.Controller.Kill()

			if err := stack.Controller.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}

	f.apply(clusterManifest("c"), controlPlaneManifest("c-cp", "c", f.machines[0]), workersManifest("c-w", "c", classOf(pool, 2)))
	kill(killRounds)
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.unchanged("c")
	f.run("scale", "omniworkers/c-w", "--replicas=1")
	kill(killRounds)
	f.waitMachines("c", "c-w", 1)
	f.wantDestroyed()
	f.run("delete", "ocl", "c", "--wait=false")
	kill(killRounds)
	f.waitGone("ocl", "c")
	f.waitRemoteGone("c")
}
