package helm

import (
	"context"
	"errors"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// waiters is how many actions wait for memory.
func waiters() int {
	_, waiting := heldMemory.Load()

	return waiting
}

// wantNothingHeld wants no memory to be held, and nobody to wait.
func wantNothingHeld(t *testing.T) {
	t.Helper()

	if bytes, waiting := heldMemory.Load(); bytes != 0 || waiting != 0 {
		t.Errorf("%d bytes are held still, and %d wait", bytes, waiting)
	}
}

// occupied leaves so much memory, and of it the part that a test with a part of its load has, so that those wait that wait with
// all of it. What is returned gives the rest back.
func occupied(t *testing.T, left int) (free func()) {
	t.Helper()

	half := int64(totalBytes-foreigntest.Load(left)) / 2 // no namespace may have all of it
	one, other := mustTake(t, "occupied", half), mustTake(t, "occupied, too", half)

	return func() { one(); other() }
}

func mustTake(t *testing.T, tenant string, cost int64) func() {
	t.Helper()

	release, ok := heldMemory.TryAcquire(tenant, cost, limiter.Waiter{})
	if !ok {
		t.Fatalf("no memory for %d MiB of %s", cost>>20, tenant)
	}

	return release
}

const mib = 1 << 20

// What is not kept any more serves what comes next, what is read again counts once, and little never waits.
func TestMemoryShare(t *testing.T) {
	share := newMemoryShare("one", false)
	size := RecordSize{Record: foreign.Size{Bytes: 30 * mib}}

	for _, name := range []string{"a", "b", "b"} {
		if err := share.admit(name, size); err != nil {
			t.Fatal(err)
		}
	}

	if share.has != 60*mib {
		t.Errorf("it has %d MiB", share.has/mib)
	}

	share.forget("a")

	if err := share.admit("c", size); err != nil || share.has != 60*mib {
		t.Errorf("%v, it has %d MiB", err, share.has/mib)
	}

	share.giveBack()

	all := mustTake(t, "one", tenantBytes)

	if err := newMemoryShare("one", false).take("a", smallBytes); err != nil {
		t.Errorf("a small chart: %v", err)
	}

	if err := newMemoryShare("one", false).take("a", smallBytes+1); !errors.As(err, new(*fullError)) {
		t.Errorf("a namespace has more than its share: %v", err)
	}

	all()
	wantNothingHeld(t)
}

// An action that is refused again waits for twice as much, and not for all that one namespace may have: smaller requests pass it.
func TestAgainRefusedWaitsForTwiceAsMuch(t *testing.T) {
	share, refusals := newMemoryShare("one", false), []int64{10 * mib, 15 * mib}

	err := share.do(t.Context(), func() error {
		if len(refusals) == 0 {
			return nil
		}

		refused := refusals[0]
		refusals = refusals[1:]

		return &fullError{refused}
	}, func() error { return nil })
	if err != nil || share.has != 20*mib {
		t.Errorf("%v, it has %d MiB", err, share.has/mib)
	}

	share.giveBack()
	wantNothingHeld(t)
}

// An action whose time is over while it waits leaves nothing behind.
func TestWaitingForMemoryEnds(t *testing.T) {
	all := mustTake(t, "one", tenantBytes)
	share := newMemoryShare("one", false)

	ctx, cancel := context.WithCancel(t.Context())
	drop := func() error { cancel(); return nil }

	if err := share.do(ctx, func() error { return share.take("a", 2*mib) }, drop); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}

	all()
	wantNothingHeld(t)
}
