package session

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
	"omni.texashpc.com/omni-cluster-operator/test/mirrortest"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
	"omni.texashpc.com/omni-cluster-operator/test/plantest"
)

// These tests use the real wire protocol against the simulated Omni.

// connect opens a session through a pool, as the controllers do, and waits for its mirror.
func connect(t *testing.T, server *omnisim.Server, told *omnitest.Recorded) (*Pool, *Lease) {
	t.Helper()

	_, key := newAccount(t, server, "operator", omnisim.RoleOperator, time.Hour)

	options := mirrortest.Telling(told)
	pool := NewPool(t.Context(), PoolOptions{
		ClusterChanged: func(_, cluster string) { options.ClusterChanged(cluster) },
		HealthChanged:  func(string) { options.HealthChanged() },
		Mirror: mirror.Options{
			ResyncMinDelay: 10 * time.Millisecond, ResyncMaxDelay: 50 * time.Millisecond,
			BootstrapTimeout: 10 * time.Minute, // the simulator shares its machine with other tests
		},
	})
	t.Cleanup(pool.Close)

	lease, err := pool.Acquire(t.Context(), Identity{UID: "uid-1", SecretUID: "1"},
		Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM(), Key: key})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(lease.Release)
	await.Until(t, "synced", func() bool { return lease.Health().Synced })

	return pool, lease
}

// addMachines connects machines that already run the Talos version of clusterDocument.
func addMachines(t *testing.T, server *omnisim.Server, count int) []string {
	t.Helper()

	var ids []string

	for range count {
		id, err := server.AddMachine(omnisim.Machine{TalosVersion: "1.13.2"})
		if err != nil {
			t.Fatal(err)
		}

		ids = append(ids, id)
	}

	return ids
}

// documentFor returns a template for cluster demo: the first machine is the control plane.
func documentFor(machines []string) string {
	document := omnitest.ClusterDocument + "---\nkind: ControlPlane\nmachines:\n- " + machines[0] + "\n---\nkind: Workers\nname: workers\nmachines:\n"
	for _, machine := range machines[1:] {
		document += "- " + machine + "\n"
	}

	return document
}

// converge reconciles like a controller, on a timer only, until the plan is empty.
func converge(t *testing.T, s *Session, document string) {
	t.Helper()

	await.Until(t, "an empty plan", func() bool {
		planned, err := s.Plan(t.Context(), "demo", plantest.Load(t, document), plan.Options{})
		if omni.Classify(err) == omni.ClassNotReady {
			return false
		}

		if err != nil {
			t.Fatal(err)
		}

		_, err = s.Apply(t.Context(), planned, plan.ApplyOptions{Consent: plan.EveryChange})
		if errors.Is(err, omni.ErrPlanOutdated) {
			return false
		}

		if err != nil {
			t.Fatal(err)
		}

		return planned.Empty()
	})
}

// awaitRunning waits until Running returns true.
func awaitRunning(t *testing.T, s *Session) observe.Status {
	t.Helper()

	var (
		status observe.Status
		last   string
	)

	for range 500 {
		var err error

		if status, err = observe.Observe(t.Context(), s.Copy(), "demo"); err != nil {
			t.Fatal(err)
		}

		ok, reason, message := observe.Running(status)
		if ok {
			return status
		}

		last = reason + ": " + message

		time.Sleep(20 * time.Millisecond)
	}

	t.Fatalf("does not run: %s\n%+v", last, status)

	return status
}

func TestLifeOfACluster(t *testing.T) {
	server := startOmni(t, omnisim.Options{Phase: 10 * time.Millisecond})

	machines := addMachines(t, server, 3)

	told := &omnitest.Recorded{}
	_, s := connect(t, server, told)
	document := documentFor(machines)

	converge(t, s.Session, document)

	if status := awaitRunning(t, s.Session); status.UUID == "" || status.Machines.Total != 3 || len(status.MachineList) != 3 {
		t.Errorf("status %+v", status)
	}

	// Each kind has a watch of its own, so the machines may be known later than their cluster.
	await.Until(t, "all machines run", func() bool {
		booting := func(machine observe.Machine) bool { return machine.Stage != "Running" }

		return !slices.ContainsFunc(awaitRunning(t, s.Session).MachineList, booting)
	})

	if !told.Told("demo") {
		t.Error("nobody was woken")
	}

	// The Kubernetes upgrade status has a watch of its own.
	await.Until(t, "the version of Kubernetes", func() bool { return awaitRunning(t, s.Session).Kubernetes.Known })

	// The second run writes nothing, and sends no request to Omni.
	server.ForgetRequests()
	converge(t, s.Session, document)

	if writes, requests := server.Writes(), server.Requests(); len(writes) != 0 || len(requests) != 0 {
		t.Errorf("writes %v, requests %v", writes, requests)
	}

	// An upgrade is visible from the first moment on.
	converge(t, s.Session, strings.Replace(document, "v1.35.0", "v1.35.1", 1))

	status, err := observe.Observe(t.Context(), s.Copy(), "demo")
	if err != nil {
		t.Fatal(err)
	}

	if ok, _, _ := observe.Running(status); ok && status.Kubernetes.Version != "1.35.1" {
		t.Errorf("runs during the upgrade: %+v", status)
	}

	status = awaitRunning(t, s.Session)
	if status.Kubernetes.Version != "1.35.1" {
		t.Errorf("upgrade %+v", status.Kubernetes)
	}

	// One machine less.
	document = strings.Replace(documentFor(machines[:2]), "v1.35.0", "v1.35.1", 1)
	converge(t, s.Session, document)

	// The statuses of the cluster and of its machines have watches of their own.
	await.Until(t, "two machines", func() bool { return len(awaitRunning(t, s.Session).MachineList) == 2 })

	deleteAll(t, s.Session, plan.DeleteOptions{})
}

// deleteAll advances a deletion until the cluster is gone.
func deleteAll(t *testing.T, s *Session, options plan.DeleteOptions) {
	t.Helper()
	deleteCluster(t, s, "demo", options)
}

// deleteCluster deletes a cluster until nothing is left of it.
func deleteCluster(t *testing.T, s *Session, name string, options plan.DeleteOptions) {
	t.Helper()

	await.Until(t, "gone", func() bool {
		planned, err := s.PlanDelete(t.Context(), name, options)
		if omni.Classify(err) == omni.ClassNotReady {
			return false
		}

		if err != nil {
			t.Fatal(err)
		}

		_, err = s.Apply(t.Context(), planned, plan.ApplyOptions{Consent: plan.EveryChange})
		if errors.Is(err, omni.ErrPlanOutdated) {
			return false
		}

		if err != nil {
			t.Fatal(err)
		}

		progress, err := observe.Progress(t.Context(), s.Copy(), name)
		if err != nil {
			t.Fatal(err)
		}

		return progress.Gone && planned.Empty()
	})
}

func TestDeadMachinesBlockADeletion(t *testing.T) {
	server := startOmni(t, omnisim.Options{Phase: 10 * time.Millisecond})

	machines := addMachines(t, server, 2)

	_, s := connect(t, server, &omnitest.Recorded{})
	converge(t, s.Session, documentFor(machines))
	awaitRunning(t, s.Session)

	server.KillMachine(machines[1])

	planned, err := s.PlanDelete(t.Context(), "demo", plan.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}

	// An Apply that waited for the machine would never end.
	if _, err = s.Apply(t.Context(), planned, plan.ApplyOptions{Consent: plan.EveryChange}); err != nil {
		t.Fatal(err)
	}

	await.Until(t, "the dead machine is named", func() bool {
		progress, err := observe.Progress(t.Context(), s.Copy(), "demo")

		return err == nil && !progress.Gone && progress.TearingDown && len(progress.Blockers) > 0 &&
			progress.Blockers[0].Machine == machines[1] && !progress.Blockers[0].Connected && !progress.Blockers[0].Since.IsZero()
	})

	deleteAll(t, s.Session, plan.DeleteOptions{DestroyMachines: true})
}

func TestMarksOverTheWire(t *testing.T) {
	server := startOmni(t, omnisim.Options{Phase: 10 * time.Millisecond})
	_, s := connect(t, server, &omnitest.Recorded{})

	converge(t, s.Session, documentFor([]string{omnitest.Machine1}))

	live, err := omni.Inspect(t.Context(), s.Copy(), "demo")
	if err != nil || live.Marks.UID != "uid-1" || !live.Exists {
		t.Errorf("live %+v, %v", live, err)
	}

	if err := plan.RemoveMarks(t.Context(), s.Live(), "demo", omnitest.OfUID1); err != nil {
		t.Error(err)
	}

	await.Until(t, "the mark is gone", func() bool {
		live, err := omni.Inspect(t.Context(), s.Copy(), "demo")

		return err == nil && live.Marks.UID == ""
	})

	// A lock that a user set blocks all changes.
	omnitest.LockCluster(t, server.State())
	await.Until(t, "the lock is seen", func() bool {
		live, err := omni.Inspect(t.Context(), s.Copy(), "demo")

		return err == nil && live.Locked
	})

	planned, err := s.PlanDelete(t.Context(), "demo", plan.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if _, err = s.Apply(t.Context(), planned, plan.ApplyOptions{Consent: plan.EveryChange}); !errors.Is(err, omni.ErrClusterLocked) {
		t.Errorf("error %v", err)
	}
}

// TestLargeContents checks first contents that are larger than the largest message that the library accepts.
func TestLargeContents(t *testing.T) {
	const count = 20

	size := foreigntest.Load(1 << 20) // each goes over the wire twice, in two encodings

	server := startOmni(t, omnisim.Options{})

	for i := range count {
		patch := omnitest.Labelled(omnires.NewConfigPatch("large-"+strconv.Itoa(i)), "demo")
		patch.TypedSpec().Value.Data = string(bytes.Repeat([]byte("x"), size)) //nolint:staticcheck // as older clients write it

		if err := server.Unchecked().Create(t.Context(), patch); err != nil {
			t.Fatal(err)
		}
	}

	_, lease := connect(t, server, &omnitest.Recorded{})

	// Every patch arrived, in a message of its own.
	found, err := lease.mirror.State().List(t.Context(), resource.NewMetadata("default", omnires.ConfigPatchType, "", resource.VersionUndefined))
	if err != nil || len(found.Items) != count {
		t.Errorf("%d patches, %v", len(found.Items), err)
	}
}
