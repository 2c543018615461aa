package helm

import (
	"context"
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
)

// What this process holds of charts while their actions run: what workers answer, the manifests, and what Helm makes
// of both. An action can wait for hours, and there may be 64 of them at the same time, and 64 uninstalls.
const (
	// totalBytes is how much that may be together, in bytes. A chart that takes more has all that one namespace may have.
	totalBytes = 288 << 20
	// tenantBytes is how much of it one namespace may have.
	tenantBytes = 192 << 20
	// smallBytes is what an action may take without being counted, so that it never waits.
	smallBytes = 1 << 20

	// bytesPerValue is what a value of a manifest takes beside its text while Helm parses it.
	bytesPerValue = 200
	// manifestCopies and answerCopies are how often the text is there: printed, recorded, packed and sent.
	manifestCopies, answerCopies = 4, 3
)

// chartMemory is the room of the process: the memory is the process's, too. Who waits is passed by those behind that fit: a chart of
// a usual size does not wait for the end of a very large one.
//
//nolint:gochecknoglobals // see above
var chartMemory = newMemoryBudget(totalBytes, tenantBytes, smallBytes, "other large charts are done").forWhole() // it prints more each time

// costOf is about what a text takes whose size is this, in bytes.
func costOf(size foreign.Size, copies int64) int64 {
	return int64(size.Nodes)*bytesPerValue + int64(size.Bytes)*copies
}

// memoryBudget bounds what is held at the same time, in all and for one tenant. It is safe for concurrent use.
type memoryBudget struct {
	bytes *limiter.Limiter[string]
	share int64  // what one tenant may have
	small int64  // what takes no more is not counted
	until string // what who waits waits for
	whole bool   // who is refused again waits for the whole share
	first bool   // who waits is before all others
}

func newMemoryBudget(total, share, small int64, until string) memoryBudget {
	return memoryBudget{bytes: limiter.New(limiter.Limits[string]{PerKey: share, Total: total}), share: share, small: small, until: until}
}

// forWhole is a budget for what needs more each time: who is refused again waits for the whole share.
func (b memoryBudget) forWhole() memoryBudget {
	b.whole = true

	return b
}

// next returns for how much to wait: for what was refused, and after a wait for twice as much as in that at least, up to
// the share. A refusal names only what was known until then, and the waits have to end.
func (b memoryBudget) next(waited, refused int64) int64 {
	if b.whole && waited > 0 {
		return b.share
	}

	return min(max(refused, 2*waited), b.share)
}

// enter waits until there is room. What is returned gives it back, once, however often it is called. The error is that of
// ctx.
func (b memoryBudget) enter(ctx context.Context, tenant string, cost int64) (release func(), err error) {
	acquire := b.bytes.Acquire
	if b.first {
		acquire = b.bytes.AcquireFirst
	}

	release, err = acquire(ctx, tenant, b.counted(cost))
	if err != nil {
		return nil, &noRoomError{b.until, err}
	}

	return release, nil
}

// try enters if there is room now.
func (b memoryBudget) try(tenant string, cost int64) (release func(), ok bool) {
	return b.bytes.TryAcquire(tenant, b.counted(cost), limiter.Waiter{})
}

// counted is what counts of what a chart takes.
func (b memoryBudget) counted(cost int64) int64 {
	if cost <= b.small {
		return 0
	}

	return cost
}

// noRoomError is an action that had no room until its time was over. It says nothing about the action, which was not tried.
type noRoomError struct {
	until string
	cause error // of the context
}

// Error implements error.
func (e *noRoomError) Error() string { return fmt.Sprintf("wait until %s: %s", e.until, e.cause) }

// Unwrap returns the cause.
func (e *noRoomError) Unwrap() error { return e.cause }
