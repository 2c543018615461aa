package e2e

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// ownershipHazards are about whose cluster it is.
func ownershipHazards() []hazard {
	return []hazard{
		{
			name: "name taken by hand before",
			bare: true,
			when: func(f *fleet) {
				f.foreign("c")
				f.apply(clusterManifest("c"), controlPlaneManifest("c-cp", "c", f.machines[0]))
			},
			says:     []seen{stalled(v1alpha1.ReasonNotOwned, `cluster "c"`, "spec.adopt")},
			machines: map[string]int{"c-control-planes": 1, "c-by-hand": 1},
			then:     func(f *fleet) { f.run("delete", "ocl", "c", "--timeout=60s") },
		},
		{
			name: "taken over by adoption",
			bare: true,
			when: func(f *fleet) {
				f.foreign("c")
				f.apply(clusterManifest("c", "  adopt: true"), controlPlaneManifest("c-cp", "c", f.machines[0]), workersManifest("c-w", "c", classOf(pool, 2)))
			},
			// What the documents add is there, what they lack waits, under Apply, too.
			says:     []seen{stalled(v1alpha1.ReasonAwaitingApproval, `MachineSet "c-by-hand"`, "approvedPlan")},
			machines: sizes(2, map[string]int{"by-hand": 1}),
			then: func(f *fleet) {
				if owner := f.view("c").Annotations[v1alpha1.MarkOwnerUID]; owner != f.uid("c") {
					f.t.Errorf("the owner is %q", owner)
				}

				f.approve("c")
				f.wait("the set to go", func() error { return f.absent("c-by-hand") })
				f.ready("c")
			},
			finally: []string{"MachineSet c-by-hand"},
		},
		{
			// The files of an adopted cluster say adopt, and so do copies of them. A move asks for it, too.
			name: "taken over from another object",
			when: func(f *fleet) {
				other := f.neighbour()
				copied := []string{clusterManifest("c", "  adopt: true"), controlPlaneManifest("c-cp", "c", f.machines[0])}
				other.apply(copied...)
				other.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNotOwned, f.name+"/c", "which exists", "release it there first")
				other.run("delete", "ocp/c-cp", "ocl/c", "--timeout=60s")
				f.unchanged("c")
				f.ready("c")

				other.apply(copied...)
				other.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNotOwned, "release it there first")
				f.merge(`{"spec":{"deletePolicy":{"orphan":true}}}`)
				f.run("delete", "ocl", "c", "--timeout=60s")
				other.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonAwaitingApproval, `MachineSet "c-c-w"`)
				f.unchanged("c")
			},
		},
		{
			name: "two objects in two namespaces",
			when: func(f *fleet) {
				other := f.neighbour()
				other.apply(clusterManifest("c"), controlPlaneManifest("c-cp", "c", f.machines[1]))
				other.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNotOwned, f.name+"/c", "clusterName")
				other.run("delete", "ocl", "c", "--timeout=60s")
			},
			says: []seen{ready()},
		},
		{
			name: "two objects in one namespace",
			when: func(f *fleet) {
				f.apply(connectionManifest("second", f.omni.Endpoint(), "key", string(f.omni.CAPEM())),
					strings.Replace(clusterManifest("twin", "  clusterName: c"), "name: omni", "name: second", 1),
					controlPlaneManifest("twin-cp", "twin", f.machines[1]))
				f.says("twin", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNotOwned, f.name+"/c")
				f.run("delete", "ocl", "twin", "--timeout=60s")
			},
			says: []seen{ready()},
		},
		{
			name: "two objects through one connection",
			when: func(f *fleet) {
				f.refused(clusterManifest("twin", "  clusterName: c"), `"c"`, "clusterName")
			},
			says: []seen{ready()},
		},
		{
			name: "copied to another namespace",
			when: func(f *fleet) {
				other := f.neighbour()
				other.copyFrom(f)
				other.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNotOwned, f.name+"/c")
				other.run("delete", "ow/c-w", "ocp/c-cp", "ocl/c", "--timeout=60s")
			},
			says: []seen{ready()},
		},
		{
			name: "exported file beside a connection of that name",
			when: exportedBesideConnection,
			says: []seen{ready()},
		},
		{
			name: "our mark on another cluster",
			when: func(f *fleet) {
				uid, id := f.uid("c"), get[v1alpha1.OmniCluster](f.space, "ocl", "c").Status.OmniClusterID
				f.removeInOmni("c")
				f.foreign("c")

				if err := omnisim.AnnotateCluster(f.t.Context(), f.omni.State(), "c", v1alpha1.MarkOwnerUID, uid); err != nil {
					f.t.Fatal(err)
				}

				f.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRemoteClusterReplaced, id, v1alpha1.AnnotationRecreate)
				f.run("delete", "ocl", "c", "--wait=false")
			},
			says:     []seen{deletionBlocked(v1alpha1.ReasonRemoteClusterReplaced, v1alpha1.AnnotationRecreate, "orphan")},
			machines: map[string]int{"c-control-planes": 1, "c-by-hand": 1},
			then: func(f *fleet) {
				f.merge(`{"spec":{"deletePolicy":{"orphan":true}}}`)
				f.waitGone("ocl", "c")
			},
		},
		{
			name: "Omni restored without the cluster",
			when: func(f *fleet) { f.removeInOmni("c") },
			says: []seen{stalled(v1alpha1.ReasonRemoteClusterGone, `cluster "c"`, v1alpha1.AnnotationRecreate)},
			// Nothing is made again, until somebody says so.
			machines: map[string]int{},
			then: func(f *fleet) {
				f.run("annotate", "ocl", "c", v1alpha1.AnnotationRecreate+"="+get[v1alpha1.OmniCluster](f.space, "ocl", "c").Status.OmniClusterID)
				f.ready("c")
				f.unchanged("c")
			},
		},
	}
}

// exportedBesideConnection exports a cluster that somebody else made, and applies the file to a namespace whose OmniConnection has
// that name and another Secret. The connection stays as it is, the file as it was written takes nothing over, and deleting what it
// made, before and after the takeover, leaves both the connection and the cluster in Omni.
func exportedBesideConnection(f *fleet) {
	before := get[v1alpha1.OmniConnection](f.space, "oconn", "omni").Spec
	f.made(fmt.Sprintf(plainCluster, "theirs", f.machines[1]))

	manifests, _ := f.mustExport(f.exportKey(), "--cluster=theirs", "--namespace="+f.name)

	for _, step := range []struct {
		manifests string
		takenOver bool
	}{{manifests: manifests}, {manifests: tookOver(f.t, manifests), takenOver: true}} {
		f.apply(step.manifests)

		if step.takenOver {
			f.takenOver("theirs")
		} else {
			f.says("theirs", v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonChangesPlanned, "spec.adopt")
			f.wantWrites()
		}

		if out, err := f.tryInput(step.manifests, "delete", "--timeout=60s", "-f", "-"); err != nil {
			f.t.Fatalf("%v: %s", err, out)
		}

		if now := get[v1alpha1.OmniConnection](f.space, "oconn", "omni").Spec; !cmp.Equal(before, now) {
			f.t.Errorf("the connection changed (-before +after):\n%s", cmp.Diff(before, now))
		}

		if got := f.view("theirs").Machines; got["theirs-control-planes"] != 1 {
			f.t.Errorf("machines in Omni: %v", got)
		}
	}
}

// foreign makes a cluster in Omni as its interface does, with the fleet's first machine as the
// control plane and the last in a worker set named by-hand.
func (f *fleet) foreign(name string) {
	f.t.Helper()

	if err := omnisim.CreateForeignCluster(f.t.Context(), f.omni.State(), name, "1.35.1", "1.13.3"); err != nil {
		f.t.Fatal(err)
	}

	f.handmadeSet(name, "control-planes", omni.LabelControlPlaneRole, f.machines[0])
	f.handmadeSet(name, "by-hand", omni.LabelWorkerRole, f.machines[3])
}
