package template

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func cluster() *v1alpha1.OmniCluster {
	return &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", Namespace: "omni", UID: "uid-1"}}
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "omni"} }

func controlPlane(name string, machines ...string) v1alpha1.OmniControlPlane {
	object := v1alpha1.OmniControlPlane{ObjectMeta: meta(name)}
	object.Spec.ClusterRef.Name = "edge"
	object.Spec.Machines = machines

	return object
}

func workers(name, set string, machines ...string) v1alpha1.OmniWorkers {
	object := v1alpha1.OmniWorkers{ObjectMeta: meta(name)}
	object.Spec.ClusterRef.Name = "edge"
	object.Spec.WorkerSetName = set
	object.Spec.Machines = machines

	return object
}

func machine(name, id string) v1alpha1.OmniMachine {
	object := v1alpha1.OmniMachine{ObjectMeta: meta(name)}
	object.Spec.ClusterRef.Name = "edge"
	object.Spec.MachineID = id

	return object
}

func TestAssembleRefuses(t *testing.T) {
	one := []v1alpha1.OmniControlPlane{controlPlane("cp", "m1")}

	for name, test := range map[string]struct {
		in   Input
		want AssembleError
	}{
		"no control plane": {
			Input{Workers: []v1alpha1.OmniWorkers{workers("w", "")}},
			AssembleError{Reason: "ControlPlaneMissing", Message: `no OmniControlPlane names OmniCluster "edge" yet`, Wait: true},
		},
		"the control plane went before the cluster, as in a namespace that is being deleted": {
			Input{Cluster: &v1alpha1.OmniCluster{
				ObjectMeta: metav1.ObjectMeta{Name: "edge"},
				Status:     v1alpha1.OmniClusterStatus{ControlPlaneRef: &v1alpha1.AppliedReference{Name: "cp"}},
			}},
			AssembleError{
				Reason: "ControlPlaneMissing",
				Message: `OmniControlPlane "cp" was deleted, and no other names OmniCluster "edge"; its cluster stays as it is in Omni. ` +
					`If it is to go, delete the OmniCluster; else create the OmniControlPlane again`,
				Wait: true,
			},
		},
		"two control planes": {
			Input{ControlPlanes: []v1alpha1.OmniControlPlane{controlPlane("b"), controlPlane("a")}},
			AssembleError{
				Reason:  "MultipleControlPlanes",
				Message: `OmniControlPlanes "a" and "b" both name OmniCluster "edge"; a cluster has one: delete the other`,
			},
		},
		"four control planes": {
			Input{ControlPlanes: []v1alpha1.OmniControlPlane{
				controlPlane("b"), controlPlane("d"), controlPlane("a"), controlPlane("c"),
			}},
			AssembleError{
				Reason:  "MultipleControlPlanes",
				Message: `OmniControlPlanes "a" and "b" both name OmniCluster "edge"; a cluster has one: delete the other (and 2 more)`,
			},
		},
		"two sets of one name": {
			Input{ControlPlanes: one, Workers: []v1alpha1.OmniWorkers{workers("x", "pool"), workers("pool", "")}},
			AssembleError{
				Reason:  "DuplicateWorkerSet",
				Message: `OmniWorkers "pool" and "x" both have the worker set name "pool"`,
			},
		},
		"two objects for one machine": {
			Input{ControlPlanes: one, Machines: []v1alpha1.OmniMachine{machine("z", "m1"), machine("m1", "")}},
			AssembleError{Reason: "DuplicateMachine", Message: `OmniMachines "m1" and "z" both describe machine "m1"`},
		},
		"two objects for a machine that no set lists": {
			Input{ControlPlanes: one, Machines: []v1alpha1.OmniMachine{machine("z", "m9"), machine("m9", "")}},
			AssembleError{Reason: "DuplicateMachine", Message: `OmniMachines "m9" and "z" both describe machine "m9"`},
		},
		"a machine in two worker sets": {
			Input{ControlPlanes: one, Workers: []v1alpha1.OmniWorkers{workers("b", "", "m2"), workers("a", "", "m3", "m2")}},
			AssembleError{Reason: "DuplicateMachine", Message: `OmniWorkers "a" and OmniWorkers "b" both list machine "m2"`},
		},
		"a machine in the control plane and a worker set": {
			Input{ControlPlanes: one, Workers: []v1alpha1.OmniWorkers{workers("a", "", "m1")}},
			AssembleError{Reason: "DuplicateMachine", Message: `OmniControlPlane "cp" and OmniWorkers "a" both list machine "m1"`},
		},
		"a machine twice in one set": {
			Input{ControlPlanes: []v1alpha1.OmniControlPlane{controlPlane("cp", "m1", "m1")}},
			AssembleError{Reason: "DuplicateMachine", Message: `OmniControlPlane "cp" lists machine "m1" twice`},
		},
		"a conflict is told before the wait": {
			Input{Workers: []v1alpha1.OmniWorkers{workers("a", "s"), workers("b", "s")}},
			AssembleError{Reason: "DuplicateWorkerSet", Message: `OmniWorkers "a" and "b" both have the worker set name "s"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.in.Cluster == nil {
				test.in.Cluster = cluster()
			}

			documents, err := Assemble(test.in)

			var got *AssembleError
			if !errors.As(err, &got) {
				t.Fatalf("got %v and %v, want an AssembleError", documents, err)
			}

			if diff := cmp.Diff(test.want, *got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}

			if got.Error() != test.want.Message {
				t.Errorf("Error() is %q", got.Error())
			}
		})
	}
}

func TestAssembleSortsAndLeavesOut(t *testing.T) {
	in := Input{
		Cluster:       cluster(),
		ControlPlanes: []v1alpha1.OmniControlPlane{controlPlane("cp", "m3", "m1")},
		Workers:       []v1alpha1.OmniWorkers{workers("a", "z", "m2"), workers("b", ""), workers("c", "a")},
		Machines: []v1alpha1.OmniMachine{
			machine("x", "m3"), machine("m2", ""), machine("lost-b", "m9"), machine("lost-a", "m8"), machine("y", "m1"),
		},
	}

	documents, err := Assemble(in)
	if err != nil {
		t.Fatal(err)
	}

	type names struct {
		ControlPlane                string
		Workers, Machines, Unlisted []string
	}

	got := names{ControlPlane: documents.ControlPlane.Name}
	for _, set := range documents.Workers {
		got.Workers = append(got.Workers, set.EffectiveWorkerSetName())
	}

	for _, m := range documents.Machines {
		got.Machines = append(got.Machines, m.EffectiveMachineID())
	}

	for _, m := range documents.Unlisted {
		got.Unlisted = append(got.Unlisted, m.EffectiveMachineID())
	}

	want := names{"cp", []string{"a", "b", "z"}, []string{"m1", "m2", "m3"}, []string{"m8", "m9"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
}

// notCounted returns the object among copies of it that must not count.
func notCounted[T any](object T, of func(*T) (*metav1.ObjectMeta, *v1alpha1.LocalObjectReference)) []T {
	deleting, elsewhere, other := object, object, object

	meta, _ := of(&deleting)
	meta.Name += "-deleting"
	meta.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}

	meta, _ = of(&elsewhere)
	meta.Name += "-elsewhere"
	meta.Namespace = "other"

	meta, ref := of(&other)
	meta.Name += "-other"
	ref.Name = "another"

	return []T{deleting, object, elsewhere, other}
}

func TestAssembleCountsOnlyWhatBelongsAndStays(t *testing.T) {
	in := Input{Cluster: cluster()}
	in.ControlPlanes = notCounted(controlPlane("cp", "m1"),
		func(o *v1alpha1.OmniControlPlane) (*metav1.ObjectMeta, *v1alpha1.LocalObjectReference) {
			return &o.ObjectMeta, &o.Spec.ClusterRef
		})
	in.Workers = notCounted(workers("w", "pool", "m2"),
		func(o *v1alpha1.OmniWorkers) (*metav1.ObjectMeta, *v1alpha1.LocalObjectReference) {
			return &o.ObjectMeta, &o.Spec.ClusterRef
		})
	in.Machines = notCounted(machine("m", "m2"),
		func(o *v1alpha1.OmniMachine) (*metav1.ObjectMeta, *v1alpha1.LocalObjectReference) {
			return &o.ObjectMeta, &o.Spec.ClusterRef
		})

	documents, err := Assemble(in)
	if err != nil {
		t.Fatal(err)
	}

	want := &Documents{
		Cluster: in.Cluster, ControlPlane: &in.ControlPlanes[1],
		Workers: in.Workers[1:2], Machines: in.Machines[1:2],
	}
	if diff := cmp.Diff(want, documents); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
}

func TestMachineOfALeavingSetIsUnlisted(t *testing.T) {
	leaving := workers("w", "", "m2")
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}

	documents, err := Assemble(Input{
		Cluster: cluster(), ControlPlanes: []v1alpha1.OmniControlPlane{controlPlane("cp", "m1")},
		Workers: []v1alpha1.OmniWorkers{leaving}, Machines: []v1alpha1.OmniMachine{machine("m", "m2")},
	})
	if err != nil {
		t.Fatal(err)
	}

	if len(documents.Machines) != 0 || len(documents.Unlisted) != 1 {
		t.Errorf("got machines %v, unlisted %v; want the machine unlisted", documents.Machines, documents.Unlisted)
	}
}
