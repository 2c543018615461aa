package omnicluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// keepsInDeletedNamespace approves whatever the plan has, and checks that nothing is written for it. It returns the message.
func (f *fixture) keepsInDeletedNamespace() string {
	f.t.Helper()

	writes := f.remoteWrites()

	f.eventually("a plan", func() string {
		f.run()

		return map[bool]string{true: "there is none"}[f.get().Status.Plan == nil]
	})

	hash := f.get().Status.Plan.Hash
	if hash == "" {
		f.t.Fatal("the plan destroys nothing")
	}

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = hash })
	f.advance(100 * settleTime)

	cluster := f.until("Synced", metav1.ConditionFalse, "NamespaceDeleting")
	f.quiet()

	if got := f.remoteWrites() - writes; got != 0 {
		f.t.Errorf("%d writes to Omni: %v", got, f.omni.Writes()[writes:])
	}

	return message(cluster, "Ready")
}

// What would take the place of a member is not made any more. So the member stays, or etcd would have one less.
func TestNamespaceThatIsDeletedKeepsAReplacedMember(t *testing.T) {
	f := newFixture(t, newCluster())

	more, err := f.omni.AddMachines(1)
	if err != nil {
		t.Fatal(err)
	}

	f.create(newControlPlane("cp", f.machines...))
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	change(f, "cp", &v1alpha1.OmniControlPlane{}, func(o *v1alpha1.OmniControlPlane) {
		o.Spec.Machines = []string{f.machines[0], f.machines[1], more[0]}
	})
	f.deleteNamespace()

	says(t, f.keepsInDeletedNamespace(), "also what is approved", `create MachineSetNode "`+more[0]+`"`)
}

// A set under another name is another set, and its machines move after they have left the first one.
func TestNamespaceThatIsDeletedKeepsARenamedSet(t *testing.T) {
	listed := func(name string, f *fixture) *v1alpha1.OmniWorkers {
		workers := newWorkers(name, "", 0)
		workers.Spec.MachineSetMachines = v1alpha1.MachineSetMachines{Machines: []string{f.machines[1]}}

		return workers
	}

	f := newFixture(t, newCluster())
	f.create(newControlPlane("cp", f.machines[0]), listed("old", f))
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	f.create(listed("new", f))
	f.delete(listed("old", f))
	f.deleteNamespace()

	says(t, f.keepsInDeletedNamespace(), "also what is approved", `create MachineSet "demo-new"`)
}

// The mark of a cluster that is to be adopted is not written any more. Without it, nothing is destroyed there.
func TestNamespaceThatIsDeletedKeepsWhatIsNotAdoptedYet(t *testing.T) {
	f := handmade(t, nil)
	f.deleteNamespace()

	says(t, f.keepsInDeletedNamespace(), "also what is approved", "mark")
}
