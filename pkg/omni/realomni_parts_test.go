//go:build realomni

package omni

import (
	"errors"
	"strings"
	"testing"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// What does not depend on a refused set is made, the refused one is tried again without doing anything else, and the rest
// follows when it is mended.
func TestRealRefusedSetStopsNothingElse(t *testing.T) {
	s := connectReal(t)
	deleteAll(t, s, DeleteOptions{DestroyMachines: true})

	mended := documentFor([]string{machine1}) + "---\nkind: Workers\nname: more\nmachines:\n- " + machine4 + "\n"
	broken := strings.Replace(mended, "machines:\n- "+machine4, "machineClass:\n  name: missing\n  size: 1", 1)

	apply := func() Result {
		t.Helper()
		eventually(t, "ready", func() bool { return s.Ready("demo") == nil })

		plan, err := s.Plan(t.Context(), "demo", []byte(broken), PlanOptions{})
		if err != nil {
			t.Fatal(err)
		}

		result, err := s.Apply(t.Context(), plan, ApplyOptions{})
		if refusal := refusalOf(err); refusal == nil || refusal.Change.ID != "demo-more" || len(result.Refused) != 1 || len(result.Skipped) != 0 {
			t.Fatalf("%v: %+v", err, result)
		}

		return result
	}

	if first := apply(); len(first.Applied) < 3 {
		t.Errorf("only %v were applied", changes(first.Applied))
	}

	if _, err := s.live.Get(t.Context(), omnires.NewMachineSetNode(machine1, setNamed("demo", "workers")).Metadata()); err != nil {
		t.Errorf("a machine of another set: %v", err)
	}

	// Omni itself may write meanwhile; what was planned is planned again.
	if second := apply(); second.Wrote() {
		t.Errorf("a second time: %v", changes(second.Applied))
	}

	converge(t, s, mended)
	deleteAll(t, s, DeleteOptions{DestroyMachines: true})
}

// Who waits for a machine of another cluster is told when it comes free, before it exists in Omni itself.
func TestRealCollisionEnds(t *testing.T) {
	told := &recorded{}
	pool := NewPool(t.Context(), PoolOptions{ClusterChanged: func(_, cluster string) { telling(told).ClusterChanged(cluster) }})
	t.Cleanup(pool.Close)

	lease, err := pool.Acquire(t.Context(), Identity{UID: "real"}, realConfig(t))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(lease.Release)

	s := lease.Session
	eventually(t, "synced", func() bool { return lease.Health().Synced })
	deleteAll(t, s, DeleteOptions{DestroyMachines: true})

	holder := strings.Replace(documentFor([]string{machine1}), "name: demo", "name: holder", 1)
	waiting := documentFor([]string{machine1})

	plan, err := s.Plan(t.Context(), "holder", []byte(holder), PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if _, err = s.Apply(t.Context(), plan, ApplyOptions{}); err != nil {
		t.Fatal(err)
	}

	eventually(t, "the collision", func() bool {
		_, err := s.Plan(t.Context(), "demo", []byte(waiting), PlanOptions{})

		return errors.Is(err, ErrCollision) && strings.Contains(Message(err), `cluster "holder"`)
	})
	told.take()

	plan, err = s.PlanDelete(t.Context(), "holder", DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if _, err = s.Apply(t.Context(), plan, ApplyOptions{Leave: EveryChange}); err != nil {
		t.Fatal(err)
	}

	eventually(t, "the waiting cluster is told", func() bool { return told.told("demo") })
	eventually(t, "nothing is in the way", func() bool {
		_, err := s.Plan(t.Context(), "demo", []byte(waiting), PlanOptions{})

		return err == nil
	})
	eventually(t, "the holder is gone", func() bool {
		live, err := s.InspectLive(t.Context(), "holder", testKeys)

		return err == nil && !live.Exists
	})
}
