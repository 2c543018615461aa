package omni

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// These tests run over the real wire protocol against the simulated Omni.

// connect opens a session through a pool, as the controllers do, and waits for its mirror.
func connect(t *testing.T, server *omnisim.Server, told *recorded) (*Pool, *Lease) {
	t.Helper()

	_, key := newAccount(t, server, "operator", omnisim.RoleOperator, time.Hour)

	options := told.options()
	pool := NewPool(t.Context(), PoolOptions{
		ClusterChanged: func(_, cluster string) { options.ClusterChanged(cluster) },
		HealthChanged:  func(string) { options.HealthChanged() },
		Mirror:         MirrorOptions{ResyncMinDelay: 10 * time.Millisecond, ResyncMaxDelay: 50 * time.Millisecond},
	})
	t.Cleanup(pool.Close)

	lease, err := pool.Acquire(t.Context(), Identity{UID: "uid-1", SecretVersion: "1"},
		Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM(), Key: key})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(lease.Release)
	eventually(t, "synced", func() bool { return lease.Health().Synced })

	return pool, lease
}

// addMachines connects machines that run the Talos of clusterDocument already.
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

// documentFor is a template for cluster demo: the first machine is the control plane.
func documentFor(machines []string) string {
	document := clusterDocument + "---\nkind: ControlPlane\nmachines:\n- " + machines[0] + "\n---\nkind: Workers\nname: workers\nmachines:\n"
	for _, machine := range machines[1:] {
		document += "- " + machine + "\n"
	}

	return document
}

// converge reconciles like a controller: woken by nothing but time, until the plan is empty.
func converge(t *testing.T, s *Session, document string) {
	t.Helper()

	eventually(t, "an empty plan", func() bool {
		plan, err := s.Plan(t.Context(), "demo", []byte(document), PlanOptions{})
		if Classify(err) == ClassNotReady {
			return false
		}

		if err != nil {
			t.Fatal(err)
		}

		if _, err = s.Apply(t.Context(), plan, ApplyOptions{Destructive: true}); err != nil {
			t.Fatal(err)
		}

		return plan.Empty()
	})
}

// awaitRunning waits until Running agrees.
func awaitRunning(t *testing.T, s *Session) Status {
	t.Helper()

	var (
		status Status
		last   string
	)

	for range 500 {
		var err error

		if status, err = s.Observe(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}

		ok, reason, message := Running(status)
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

	told := &recorded{}
	_, s := connect(t, server, told)
	document := documentFor(machines)

	converge(t, s.Session, document)

	status := awaitRunning(t, s.Session)
	if status.UUID == "" || status.Machines.Total != 3 || len(status.MachineList) != 3 || status.MachineList[0].Stage != "Running" {
		t.Errorf("status %+v", status)
	}

	if !told.told("demo") {
		t.Error("nobody was woken")
	}

	// The second run writes nothing, and asks Omni for nothing.
	server.ForgetRequests()
	converge(t, s.Session, document)

	if writes, requests := server.Writes(), server.Requests(); len(writes) != 0 || len(requests) != 0 {
		t.Errorf("writes %v, requests %v", writes, requests)
	}

	// An upgrade is seen, from the first moment on.
	converge(t, s.Session, strings.Replace(document, "v1.35.0", "v1.35.1", 1))

	status, err := s.Observe(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}

	if ok, _, _ := Running(status); ok && status.Kubernetes.Version != "1.35.1" {
		t.Errorf("runs during the upgrade: %+v", status)
	}

	status = awaitRunning(t, s.Session)
	if status.Kubernetes.Version != "1.35.1" {
		t.Errorf("upgrade %+v", status.Kubernetes)
	}

	// One machine less.
	document = strings.Replace(documentFor(machines[:2]), "v1.35.0", "v1.35.1", 1)
	converge(t, s.Session, document)

	if status = awaitRunning(t, s.Session); len(status.MachineList) != 2 {
		t.Errorf("machines %+v", status.MachineList)
	}

	deleteAll(t, s.Session, DeleteOptions{})
}

// deleteAll advances a deletion until the cluster is gone.
func deleteAll(t *testing.T, s *Session, options DeleteOptions) {
	t.Helper()

	eventually(t, "gone", func() bool {
		plan, err := s.PlanDelete(t.Context(), "demo", options)
		if Classify(err) == ClassNotReady {
			return false
		}

		if err != nil {
			t.Fatal(err)
		}

		if _, err = s.Apply(t.Context(), plan, ApplyOptions{Destructive: true}); err != nil {
			t.Fatal(err)
		}

		progress, err := s.DeleteProgress(t.Context(), "demo")
		if err != nil {
			t.Fatal(err)
		}

		return progress.Gone && plan.Empty()
	})
}

func TestDeadMachinesBlockADeletion(t *testing.T) {
	server := startOmni(t, omnisim.Options{Phase: 10 * time.Millisecond})

	machines := addMachines(t, server, 2)

	_, s := connect(t, server, &recorded{})
	converge(t, s.Session, documentFor(machines))
	awaitRunning(t, s.Session)

	server.KillMachine(machines[1])

	plan, err := s.PlanDelete(t.Context(), "demo", DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}

	started := time.Now()

	if _, err = s.Apply(t.Context(), plan, ApplyOptions{Destructive: true}); err != nil {
		t.Fatal(err)
	}

	if took := time.Since(started); took > 2*time.Second {
		t.Errorf("Apply waited for %v", took)
	}

	eventually(t, "the dead machine is named", func() bool {
		progress, err := s.DeleteProgress(t.Context(), "demo")

		return err == nil && !progress.Gone && progress.TearingDown && len(progress.Blockers) > 0 &&
			progress.Blockers[0].Machine == machines[1] && !progress.Blockers[0].Connected && !progress.Blockers[0].Since.IsZero()
	})

	deleteAll(t, s.Session, DeleteOptions{DestroyMachines: true})
}

func TestRefusalsOverTheWire(t *testing.T) {
	server := startOmni(t, omnisim.Options{Phase: 10 * time.Millisecond})
	_, s := connect(t, server, &recorded{})
	machines := []string{machine1}

	for _, test := range []struct {
		name, document, change string
	}{
		{"a version that Omni does not know", strings.Replace(documentFor(machines), "v1.13.2", "v1.13.99", 1), "demo"},
		{"a machine class that is missing", clusterDocument + "---\nkind: ControlPlane\nmachineClass:\n  name: missing\n  size: 1\n", "demo-control-planes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			eventually(t, "ready", func() bool { return s.Ready("demo") == nil })

			plan, err := s.Plan(t.Context(), "demo", []byte(test.document), PlanOptions{})
			if err != nil {
				t.Fatal(err)
			}

			_, err = s.Apply(t.Context(), plan, ApplyOptions{})

			var refused *ChangeError
			if !errors.As(err, &refused) || refused.Class != ClassRefused || refused.Change.ID != test.change {
				t.Errorf("error %v", err)
			}
		})
	}

	// The half-made cluster of the second row goes on from where it is.
	eventually(t, "ready", func() bool { return s.Ready("demo") == nil })

	plan, err := s.Plan(t.Context(), "demo", []byte(documentFor(machines)), PlanOptions{})
	if err != nil || plan.Count(ActionCreate) == 0 {
		t.Fatalf("plan %v, %v", lines(plan), err)
	}

	// Faults on the way have their classes, too.
	for code, want := range map[codes.Code]Class{
		codes.Internal: ClassTransient, codes.PermissionDenied: ClassDenied, codes.Unauthenticated: ClassUnauthenticated,
		codes.Unavailable: ClassTransient, codes.InvalidArgument: ClassRefused, codes.AlreadyExists: ClassConflict,
	} {
		remove := server.Inject(omnisim.Fault{Method: "Create", Code: code})

		if _, err = s.Apply(t.Context(), plan, ApplyOptions{}); Classify(err) != want {
			t.Errorf("%s: %v is %q", code, err, Classify(err))
		}

		remove()
	}
}

func TestRolesOverTheWire(t *testing.T) {
	server := startOmni(t, omnisim.Options{Phase: 10 * time.Millisecond})
	_, s := connect(t, server, &recorded{})

	plan, err := s.Plan(t.Context(), "demo", []byte(documentFor([]string{machine1})), PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if err = server.SetRole("operator", omnisim.RoleReader); err != nil {
		t.Fatal(err)
	}

	if _, err = s.Apply(t.Context(), plan, ApplyOptions{}); Classify(err) != ClassDenied {
		t.Errorf("error %v is %q", err, Classify(err))
	}
}

func TestLostConnectionsOverTheWire(t *testing.T) {
	server := startOmni(t, omnisim.Options{Phase: 10 * time.Millisecond})
	told := &recorded{}
	_, s := connect(t, server, told)

	for i := range 3 {
		if err := server.State().Create(t.Context(), clusterNamed(fmt.Sprintf("c-%d", i))); err != nil {
			t.Fatal(err)
		}
	}

	eventually(t, "told", func() bool { return told.told("c-2") })

	// Watches that end are opened again, and nothing is told that did not change.
	// The simulated Omni works on the clusters for a moment.
	time.Sleep(300 * time.Millisecond)
	told.take()
	server.ResetStreams()
	eventually(t, "the loss was seen", func() bool {
		told.mu.Lock()
		defer told.mu.Unlock()

		return told.health >= 2
	})
	eventually(t, "synced again", func() bool { return s.Health().Synced })

	if clusters := told.take(); len(clusters) > 0 {
		t.Errorf("told of %v", clusters)
	}

	// An Omni that is down says so, and comes back by itself.
	server.GoDown()
	eventually(t, "unreachable", func() bool { return s.Health().Class == ClassUnreachable })

	if err := s.Ready("c-0"); !errors.Is(err, ErrNotSynced) {
		t.Errorf("Ready: %v", err)
	}

	if err := server.State().Create(t.Context(), clusterNamed("while-down")); err != nil {
		t.Fatal(err)
	}

	if err := server.ComeBack(); err != nil {
		t.Fatal(err)
	}

	eventually(t, "synced again", func() bool { return s.Health().Synced })
	eventually(t, "told what happened meanwhile", func() bool { return told.told("while-down") })
}

func TestARevokedKeyShowsInHealth(t *testing.T) {
	server := startOmni(t, omnisim.Options{Phase: 10 * time.Millisecond})
	encoded, key := newAccount(t, server, "revoked", omnisim.RoleOperator, time.Hour)

	client, err := dial(t, Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM(), Key: key})
	if err != nil {
		t.Fatal(err)
	}

	m := startMirror(t, client.State(), MirrorOptions{ResyncMinDelay: time.Millisecond, ResyncMaxDelay: 20 * time.Millisecond})

	if err = server.RevokeKey(encoded); err != nil {
		t.Fatal(err)
	}

	server.ResetStreams()
	eventually(t, "unauthenticated", func() bool { return m.Health().Class == ClassUnauthenticated })
}

func TestMarksOverTheWire(t *testing.T) {
	server := startOmni(t, omnisim.Options{Phase: 10 * time.Millisecond})
	_, s := connect(t, server, &recorded{})

	converge(t, s.Session, documentFor([]string{machine1}))

	live, err := s.Inspect(t.Context(), "demo", testKeys)
	if err != nil || live.Marks.UID != "uid-1" || !live.Exists {
		t.Errorf("live %+v, %v", live, err)
	}

	removed, err := s.RemoveMarks(t.Context(), "demo", testKeys, "uid-1")
	if err != nil || !removed {
		t.Errorf("%v, %v", removed, err)
	}

	eventually(t, "the mark is gone", func() bool {
		live, err := s.Inspect(t.Context(), "demo", testKeys)

		return err == nil && live.Marks.UID == ""
	})

	// A lock set by hand keeps everything off.
	lockCluster(t, server.State())
	eventually(t, "the lock is seen", func() bool {
		live, err := s.Inspect(t.Context(), "demo", testKeys)

		return err == nil && live.Locked
	})

	plan, err := s.PlanDelete(t.Context(), "demo", DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if _, err = s.Apply(t.Context(), plan, ApplyOptions{Destructive: true}); !errors.Is(err, ErrClusterLocked) {
		t.Errorf("error %v", err)
	}
}
