package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// The life of a cluster: made, shown, scaled, staged, applied, deleted.
func TestClusterLife(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.waitCondition("oconn", "omni", v1alpha1.ConditionReady, metav1.ConditionTrue, "")

	machine := f.machines[1]
	f.apply(workersManifest("life-static", "life", "machines: ["+machine+"]"), machineManifest(machine, "life", "  install: {disk: /dev/vda}"))
	f.cluster("life", "  labels: {team: a}")

	view := f.view("life")
	if view.KubernetesVersion != "1.35.1" || view.Labels["team"] != "a" || view.Machines["life-life-static"] != 1 {
		t.Errorf("Omni has %+v", view)
	}

	for _, object := range []struct{ resource, name string }{{"ocp", "life-cp"}, {"ow", "life-w"}, {"ow", "life-static"}, {"om", machine}} {
		f.waitCondition(object.resource, object.name, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	}

	table := strings.Join(strings.Fields(f.run("get", "ocl", "life", "--no-headers")), " ")
	if !strings.HasPrefix(table, "life False True ") || !strings.Contains(table, " v1.35.1 v1.13.3 1/1 ") {
		t.Errorf("table row: %s", table)
	}

	f.run("scale", "omniworkers/life-w", "--replicas=4")
	f.waitMachines("life", "life-w", 4)

	f.run("patch", "ocl", "life", "--type=merge", "-p", `{"spec":{"suspend":true,"kubernetes":{"version":"v1.35.4"}}}`)
	f.waitCondition("ocl", "life", v1alpha1.ConditionSuspended, metav1.ConditionTrue, "")
	f.waitShows("the plan", "ocl", "life", "{.status.plan.updates}", "1")

	if got := f.view("life").KubernetesVersion; got != "1.35.1" {
		t.Errorf("a suspended edit reached Omni: %s", got)
	}

	f.run("patch", "ocl", "life", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	f.wait("the upgrade", func() error {
		if got := f.view("life").KubernetesVersion; got != "1.35.4" {
			return fmt.Errorf("Omni has %s", got)
		}

		return nil
	})

	f.run("delete", "ocl", "life", "--timeout=60s")

	if view := f.view("life"); view.Exists {
		t.Errorf("Omni still has %+v", view)
	}

	f.run("delete", "oconn", "omni", "--timeout=60s")
	f.run("delete", "secret", "key", "--timeout=60s")
}

// A second run with nothing changed writes nothing, neither to Omni nor to Kubernetes, also after
// a restart of the controller.
func TestSecondRunWritesNothing(t *testing.T) {
	slow(t)
	f, before, after := restartedFleet(t, "")
	if after != before {
		// A write that was late before the restart looks like one of the restart. In another fleet that is not so again.
		t.Logf("written around the restart\nbefore: %s\nafter:  %s", before, after)

		f, before, after = restartedFleet(t, "-again")
	}

	if after != before {
		t.Errorf("the restart wrote\nbefore: %s\nafter:  %s", before, after)
	}

	writes := len(f.omni.Writes())
	f.reconciled("quiet")
	f.settled(f.versions)

	if got := len(f.omni.Writes()); got != writes {
		t.Errorf("%d writes to Omni", got-writes)
	}
}

// restartedFleet is a fleet with a cluster that was ready and quiet when the controller was restarted, and the versions
// of all objects before and after that. Nothing is written to Omni by the restart.
func restartedFleet(t *testing.T, suffix string) (f *fleet, before, after string) {
	t.Helper()

	f = newFleetIn(t, suffix)
	f.cluster("quiet")

	for resource, name := range map[string]string{"oconn": "omni", "ocp": "quiet-cp", "ow": "quiet-w"} {
		f.waitCondition(resource, name, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	}

	f.reconciled("quiet")
	f.settled(f.versions)

	before = f.versions()
	writes := len(f.omni.Writes())

	if err := stack.Controller.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	f.wait("the new process to have looked at the cluster", func() error {
		metrics, err := stack.Controller.Metrics(t.Context())
		if err == nil && !strings.Contains(metrics, fmt.Sprintf("name=%q,namespace=%q", "quiet", f.name)) {
			err = errors.New("no metric of it")
		}

		return err
	})
	f.settled(f.versions)

	if got := len(f.omni.Writes()); got != writes {
		t.Errorf("the restart made %d writes to Omni", got-writes)
	}

	return f, before, f.versions()
}

// versions are those of all objects of ours and of the Secrets.
func (f *fleet) versions() string {
	return f.run("get", "omni,secret", "-o", "jsonpath={range .items[*]}{.kind}/{.metadata.name}@{.metadata.resourceVersion} {end}")
}

// settled waits until what the function returns has not changed for a second.
func (f *fleet) settled(read func() string) {
	f.t.Helper()

	last, since := read(), time.Now()

	f.wait("the status to settle", func() error {
		if now := read(); now != last {
			last, since = now, time.Now()
		}

		if quiet := time.Since(since); quiet < time.Second {
			return fmt.Errorf("quiet for %s", quiet)
		}

		return nil
	})
}

func TestOrphanKeepsTheClusterInOmni(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.cluster("kept", "  deletePolicy: {orphan: true}")
	// Children first: with orphan nothing of it may reach Omni.
	f.run("delete", "ocl", "kept", "--timeout=60s")
	f.run("delete", "ow,ocp", "--all")

	view := f.view("kept")
	if !view.Exists || view.Machines["kept-kept-w"] != 2 || view.Machines["kept-control-planes"] != 1 {
		t.Errorf("Omni has %+v", view)
	}

	if owner := view.Annotations[v1alpha1.MarkOwnerUID]; owner != "" {
		t.Errorf("the mark stayed: %s", owner)
	}
}

func TestForeignClusterIsLeftAlone(t *testing.T) {
	t.Parallel()

	f := newFleet(t)

	if err := omnisim.CreateForeignCluster(t.Context(), f.omni.State(), "foreign", "1.35.1", "1.13.3"); err != nil {
		t.Fatal(err)
	}

	f.apply(clusterManifest("foreign"), controlPlaneManifest("cp", "foreign", f.machines[0]))

	message := f.waitCondition("ocl", "foreign", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNotOwned)
	if !strings.Contains(message, "foreign") {
		t.Errorf("message: %s", message)
	}

	writes := len(f.omni.Writes())
	f.run("delete", "ocl", "foreign", "--timeout=60s")

	if view := f.view("foreign"); !view.Exists || len(f.omni.Writes()) != writes {
		t.Errorf("the foreign cluster was touched: %+v", view)
	}
}

func TestDestroyingChangeWaitsToSettle(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.cluster("settle")
	f.run("patch", "ocl", "settle", "--type=merge", "-p", `{"spec":{"changePolicy":"ConfirmDestructive"}}`)
	f.run("scale", "omniworkers/settle-w", "--replicas=0")
	f.waitCondition("ocl", "settle", v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)

	if plan := get[v1alpha1.OmniCluster](f.space, "ocl", "settle").Status.Plan; plan == nil || plan.Hash == "" || len(plan.Changes) != 1 || !plan.Changes[0].Destructive {
		t.Errorf("plan: %+v", plan)
	}

	time.Sleep(2 * settleTime)

	if got := f.view("settle").Machines["settle-settle-w"]; got != 2 {
		t.Fatalf("machines were destroyed without approval: %d left", got)
	}

	f.run("patch", "ocl", "settle", "--type=merge", "-p", `{"spec":{"changePolicy":"Apply"}}`)
	f.waitMachines("settle", "settle-w", 0)
	f.waitCondition("ocl", "settle", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

// A rename that arrives in two applies: the old set goes, the new one comes, nothing else.
func TestChildDeletedAndMadeAgainWithinTheSettleTime(t *testing.T) {
	t.Parallel()

	inFreshFleets(t, omnisim.DefaultVersion, func(f *fleet) {
		f.cluster("again")
		f.follow("again")

		writes := len(f.omni.Writes())

		if !f.inTime(func() {
			f.remove("ow", "again-w")
			f.hesitate(`MachineSet "again-again-w"`)
			f.put(workersManifest("again-w", "again", classOf(pool, 2)))
		}) {
			return
		}

		f.waitCondition("ow", "again-w", v1alpha1.ConditionReady, metav1.ConditionTrue, "")

		if got := len(f.omni.Writes()); got != writes {
			t.Errorf("%d writes to Omni; the set came back before the settle time", got-writes)
		}
	})
}
