//go:build realomni

package session

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
	"omni.texashpc.com/omni-cluster-operator/test/plantest"
)

// These tests run against a real Omni, on request: hack/test-omni.sh starts one without any machine and sets the
// address. They check that planning, applying, locks and deletion behave there as in the other tests.

func realConfig(t *testing.T) Config {
	t.Helper()

	key, err := ParseServiceAccountKey([]byte(os.Getenv("OMNI_SERVICE_ACCOUNT_KEY")))
	if err != nil {
		t.Fatal(err)
	}

	bundle, err := os.ReadFile(os.Getenv("OMNI_CA_FILE"))
	if err != nil {
		t.Fatal(err)
	}

	return Config{Endpoint: os.Getenv("OMNI_ENDPOINT"), Key: key, CABundle: bundle}
}

func connectReal(t *testing.T) *Session {
	t.Helper()

	pool := NewPool(t.Context(), PoolOptions{})
	t.Cleanup(pool.Close)

	lease, err := pool.Acquire(t.Context(), Identity{UID: "real"}, realConfig(t))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(lease.Release)
	await.Until(t, "synced", func() bool { return lease.Health().Synced })

	return lease.Session
}

func TestRealConnection(t *testing.T) {
	config := realConfig(t)

	client, err := Dial(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}

	_ = client.Close()

	unverified := config
	unverified.CABundle = nil

	if _, err = Dial(t.Context(), unverified); omni.Classify(err) != omni.ClassTLS {
		t.Errorf("without the CA: %v is %q", err, omni.Classify(err))
	}

	unverified.InsecureSkipTLSVerify = true

	if client, err = Dial(t.Context(), unverified); err != nil {
		t.Errorf("without verification: %v", err)
	} else {
		_ = client.Close()
	}

	stranger := config
	stranger.Key = testKey(t)

	if _, err = Dial(t.Context(), stranger); omni.Classify(err) != omni.ClassUnauthenticated {
		t.Errorf("an unknown key: %v is %q", err, omni.Classify(err))
	}
}

func TestRealLifeOfACluster(t *testing.T) {
	s := connectReal(t)
	machines := []string{omnitest.Machine1, omnitest.Machine2}
	document := documentFor(machines)

	deleteAll(t, s, plan.DeleteOptions{DestroyMachines: true})
	converge(t, s, document)

	await.Until(t, "the cluster has its identity", func() bool {
		live, err := omni.Inspect(t.Context(), s.Copy(), "demo")

		return err == nil && live.Exists && live.UUID != "" && live.Marks.UID == "uid-1"
	})
	await.Until(t, "Omni says how it is", func() bool {
		status, err := observe.Observe(t.Context(), s.Copy(), "demo")
		ok, _, _ := observe.Running(status)

		return err == nil && status.Known && !ok && len(status.MachineSets) == 2 && len(status.MachineList) == 2
	})

	// A machine that a user locked stays locked through a change.
	omnitest.LockMachine(t, s.live, omnitest.Machine2)
	await.Until(t, "the lock is seen", func() bool {
		status, err := observe.Observe(t.Context(), s.Copy(), "demo")

		return err == nil && len(status.MachineList) == 2 && status.MachineList[1].Locked
	})

	document = strings.Replace(document, "v1.35.0", "v1.35.1", 1)
	converge(t, s, document)

	if status, err := observe.Observe(t.Context(), s.Copy(), "demo"); err != nil || !status.MachineList[1].Locked || status.KubernetesVersion != "1.35.1" {
		t.Errorf("status %+v, %v", status, err)
	}

	// Omni refuses a downgrade, and the error shows that.
	await.Until(t, "ready", func() bool { return s.Ready("demo") == nil })

	planned, err := s.Plan(t.Context(), "demo", plantest.Load(t, strings.Replace(document, "v1.35.1", "v1.34.0", 1)), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}

	var refused *plan.ChangeError
	if _, err = s.Apply(t.Context(), planned, plan.ApplyOptions{}); !errors.As(err, &refused) || refused.Class != omni.ClassRefused {
		t.Errorf("downgrade: %v is %q", err, omni.Classify(err))
	}

	deleteAll(t, s, plan.DeleteOptions{DestroyMachines: true})
}

func TestRealRefusals(t *testing.T) {
	s := connectReal(t)

	deleteAll(t, s, plan.DeleteOptions{DestroyMachines: true})

	for _, test := range []struct{ name, document, change string }{
		{"a version that Omni does not know", strings.Replace(documentFor([]string{omnitest.Machine1}), "v1.13.2", "v1.13.99", 1), "demo"},
		{"a machine class that is missing", omnitest.ClusterDocument + "---\nkind: ControlPlane\nmachineClass:\n  name: missing\n  size: 1\n", "demo-control-planes"},
	} {
		await.Until(t, "ready", func() bool { return s.Ready("demo") == nil })

		planned, err := s.Plan(t.Context(), "demo", plantest.Load(t, test.document), plan.Options{})
		if err != nil {
			t.Fatal(err)
		}

		var refused *plan.ChangeError
		if _, err = s.Apply(t.Context(), planned, plan.ApplyOptions{}); !errors.As(err, &refused) || refused.Class != omni.ClassRefused || refused.Change.ID != test.change {
			t.Errorf("%s: %v is %q", test.name, err, omni.Classify(err))
		}
	}

	time.Sleep(100 * time.Millisecond)
	deleteAll(t, s, plan.DeleteOptions{DestroyMachines: true})
}
