package helm

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/foreigntest"
)

func waiters(r memoryBudget) int {
	_, waiting := r.bytes.Load()

	return waiting
}

// wantEmpty wants nothing to be held, and nobody to wait.
func (b memoryBudget) wantEmpty(t *testing.T) {
	t.Helper()

	if held, waiting := b.bytes.Load(); held != 0 || waiting != 0 {
		t.Errorf("%d bytes are held still, and %d wait", held, waiting)
	}
}

// occupied takes what of a room of total bytes a test with a part of its load does not need, so that those wait that wait with
// all of it. What is returned gives it back.
func occupied(t *testing.T, r memoryBudget, total int) (free func()) {
	t.Helper()

	half := int64(total-foreigntest.Load(total)) / 2 // no namespace may have all of it
	one, other := mustTry(t, r, "occupied", half), mustTry(t, r, "occupied, too", half)

	return func() { one(); other() }
}

// enterLater enters in the background; the channel tells when it has.
func enterLater(t *testing.T, r memoryBudget, tenant string, cost int64) chan func() {
	t.Helper()

	before, entered := waiters(r), make(chan func(), 1)

	go func() {
		release, err := r.enter(context.Background(), tenant, cost)
		if err != nil {
			panic(err)
		}

		entered <- release
	}()

	for waiters(r) == before {
		time.Sleep(time.Millisecond)
	}

	return entered
}

func mustTry(t *testing.T, r memoryBudget, tenant string, cost int64) func() {
	t.Helper()

	release, ok := r.try(tenant, cost)
	if !ok {
		t.Fatalf("no room for %d MiB of %s", cost>>20, tenant)
	}

	return release
}

const mib = 1 << 20

// A tenant leaves room for others, a small chart never waits, and a usual one not behind a large one.
func TestRoom(t *testing.T) {
	r := newMemoryBudget(12*mib, 8*mib, smallBytes, "it is free")
	first := mustTry(t, r, "a", 6*mib)

	if _, ok := r.try("a", 3*mib); ok {
		t.Error("one tenant has more than its share")
	}

	// More than may be at all takes what may be.
	large := enterLater(t, r, "b", 100*mib)

	for range 64 {
		mustTry(t, r, "a", smallBytes)
	}

	second := mustTry(t, r, "c", 4*mib)

	if _, ok := r.try("d", 3*mib); ok {
		t.Error("there is more than fits")
	}

	first()
	first() // gives nothing back

	(<-large)()
	second()

	r.wantEmpty(t)
}

// Who does not want to wait any more leaves nothing behind.
func TestWaitingForRoomEnds(t *testing.T) {
	r := newMemoryBudget(8*mib, 8*mib, smallBytes, "it is free")
	release := mustTry(t, r, "a", 8*mib)

	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()

	if _, err := r.enter(ctx, "b", 2*mib); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}

	release()

	r.wantEmpty(t)
}

// Many at the same time, some of which give up, get and give back all of it.
func TestRoomOfMany(t *testing.T) {
	r := newMemoryBudget(12*mib, 8*mib, smallBytes, "it is free")

	var all sync.WaitGroup

	for i := range 200 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
			defer cancel()

			release, err := r.enter(ctx, string(rune('a'+i%5)), int64(i%9)*mib)
			if err != nil {
				return
			}

			if held, _ := r.bytes.Load(); held > 12*mib {
				t.Errorf("%d bytes are held", held)
			}

			time.Sleep(time.Millisecond)
			release()
		})
	}

	all.Wait()

	r.wantEmpty(t)
}
