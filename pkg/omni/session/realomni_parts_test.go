//go:build realomni

package session

import (
	"errors"
	"strings"
	"testing"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/mirrortest"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
	"omni.texashpc.com/omni-cluster-operator/test/plantest"
)

// TestRealRefusedSetStopsNothingElse checks that steps that do not depend on a refused set are made, that the refused
// one is retried without other writes, and that the rest follows when the cause is repaired.
func TestRealRefusedSetStopsNothingElse(t *testing.T) {
	s := connectReal(t)
	deleteAll(t, s, plan.DeleteOptions{DestroyMachines: true})

	mended := documentFor([]string{omnitest.Machine1}) + "---\nkind: Workers\nname: more\nmachines:\n- " + omnitest.Machine4 + "\n"
	broken := strings.Replace(mended, "machines:\n- "+omnitest.Machine4, "machineClass:\n  name: missing\n  size: 1", 1)

	apply := func() plan.Result {
		t.Helper()
		await.Until(t, "ready", func() bool { return s.Ready("demo") == nil })

		planned, err := s.Plan(t.Context(), "demo", plantest.Load(t, broken), plan.Options{})
		if err != nil {
			t.Fatal(err)
		}

		result, err := s.Apply(t.Context(), planned, plan.ApplyOptions{})

		var refusal *plan.ChangeError
		if !errors.As(err, &refusal) || refusal.Class != omni.ClassRefused || refusal.Change.ID != "demo-more" || len(result.Refused) != 1 || len(result.Skipped) != 0 {
			t.Fatalf("%v: %+v", err, result)
		}

		return result
	}

	first := apply()
	if len(first.Applied) < 3 {
		t.Errorf("only %v were applied", plantest.Lines(first.Applied))
	}

	if _, err := s.live.Get(t.Context(), omnires.NewMachineSetNode(omnitest.Machine1, omnitest.SetNamed("demo", "workers")).Metadata()); err != nil {
		t.Errorf("a machine of another set: %v; applied: %v", err, plantest.Lines(first.Applied))
	}

	// Omni itself may write meanwhile, so the plan is made again.
	if second := apply(); len(second.Taken()) > 0 {
		t.Errorf("a second time: %v", plantest.Lines(second.Applied))
	}

	converge(t, s, mended)
	deleteAll(t, s, plan.DeleteOptions{DestroyMachines: true})
}

// TestRealCollisionEnds checks that a cluster that waits for a machine of another cluster is reported when the machine
// becomes free, before the waiting cluster exists in Omni.
func TestRealCollisionEnds(t *testing.T) {
	told := &omnitest.Recorded{}
	pool := NewPool(t.Context(), PoolOptions{ClusterChanged: func(_, cluster string) { mirrortest.Telling(told).ClusterChanged(cluster) }})
	t.Cleanup(pool.Close)

	lease, err := pool.Acquire(t.Context(), Identity{UID: "real"}, realConfig(t))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(lease.Release)

	s := lease.Session
	await.Until(t, "synced", func() bool { return lease.Health().Synced })
	deleteAll(t, s, plan.DeleteOptions{DestroyMachines: true})

	holder := strings.Replace(documentFor([]string{omnitest.Machine1}), "name: demo", "name: holder", 1)
	waiting := documentFor([]string{omnitest.Machine1})

	planned, err := s.Plan(t.Context(), "holder", plantest.Load(t, holder), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}

	if _, err = s.Apply(t.Context(), planned, plan.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}

	await.Until(t, "the collision", func() bool {
		_, err := s.Plan(t.Context(), "demo", plantest.Load(t, waiting), plan.Options{})

		return errors.Is(err, omni.ErrCollision) && strings.Contains(omni.Message(err), `cluster "holder"`)
	})
	told.Take()

	deleteCluster(t, s, "holder", plan.DeleteOptions{})
	await.Until(t, "the waiting cluster is told", func() bool { return told.Told("demo") })
	await.Until(t, "nothing is in the way", func() bool {
		_, err := s.Plan(t.Context(), "demo", plantest.Load(t, waiting), plan.Options{})

		return err == nil
	})
	await.Until(t, "the holder is gone", func() bool {
		live, err := s.InspectLive(t.Context(), "holder")

		return err == nil && !live.Exists
	})
}
