package helm

import (
	"context"
	"errors"
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
)

// What the actions and comparisons of this process keep at the same time: records of releases and what Helm makes of them, packed
// charts until they are rendered, and what workers answer. An action can wait for hours, and there may be 64 of them, and 64 uninstalls.
// Users decide how large a chart is; whoever may write Secrets in a workload cluster decides how large a record is.
const (
	// totalBytes is the most that all may have together, in bytes, and tenantBytes the most for one namespace. An action that needs
	// more counts as that.
	totalBytes  = 320 << 20
	tenantBytes = 192 << 20
	// smallBytes does not count: an action that needs no more never waits.
	smallBytes = 1 << 20

	// bytesPerValue is what a value of a text takes, beside its bytes, while Helm parses it.
	bytesPerValue = 200
	// How many copies of a text there are: rendered output is printed, recorded, packed and sent.
	manifestCopies, answerCopies, recordCopies, recordManifestCopies = 4, 3, 1, 2
)

// What an action keeps beside records. No record has such a name.
const (
	packedChart    = "packed chart"
	renderedOutput = "rendered output"
	joinedManifest = "joined manifest" // of several revisions
	olderRevisions = "older revisions" // of which the records are not kept
)

// heldMemory is what actions and comparisons keep. Smaller requests that fit pass those that wait, so a usual chart does not
// wait behind a very large one.
//
//nolint:gochecknoglobals // the memory is the process's, too
var heldMemory = limiter.New(limiter.Limits[string]{PerKey: tenantBytes, Total: totalBytes})

// costOf is about what a text of this size takes, in bytes.
func costOf(size foreign.Size, copies int64) int64 {
	return int64(size.Nodes)*bytesPerValue + int64(size.Bytes)*copies
}

// memoryShare is what one action or comparison has of heldMemory. A nil share keeps as much as it wants. It is not safe for concurrent use.
type memoryShare struct {
	tenant  string
	acquire func(ctx context.Context, tenant string, bytes int64) (release func(), err error)

	costs   map[string]int64 // of what is kept, by name
	has     int64
	release func()
}

// newMemoryShare returns a share that has nothing yet. With first it waits before those of all others.
func newMemoryShare(tenant string, first bool) *memoryShare {
	acquire := heldMemory.Acquire
	if first {
		acquire = heldMemory.AcquireFirst
	}

	return &memoryShare{tenant: tenant, acquire: acquire, costs: map[string]int64{}, release: func() {}}
}

// admit takes memory for a record.
func (s *memoryShare) admit(name string, size RecordSize) error {
	return s.take(name, costOf(size.Record, recordCopies)+costOf(size.Manifests, recordManifestCopies))
}

// take makes the share large enough to keep one thing more. If there is no memory now, the share has none any more: two actions
// that keep what they have while they wait would wait for each other. The error then makes do begin the action again.
func (s *memoryShare) take(name string, cost int64) error {
	if s == nil {
		return nil
	}

	s.costs[name] = cost

	needed := int64(0)
	for _, cost := range s.costs {
		needed += cost
	}

	if needed = min(needed, tenantBytes); needed <= max(s.has, smallBytes) {
		return nil
	}

	s.giveBack()

	release, ok := heldMemory.TryAcquire(s.tenant, needed, limiter.Waiter{})
	if !ok {
		return &fullError{needed}
	}

	s.has, s.release = needed, release

	return nil
}

// forget is told of what is not kept any more. Its memory serves what the action takes next.
func (s *memoryShare) forget(name string) {
	if s != nil {
		delete(s.costs, name)
	}
}

// giveBack gives back what the share has.
func (s *memoryShare) giveBack() {
	s.release()
	s.has, s.release = 0, func() {}
}

// do does something that takes memory. If that is refused, drop drops what was read, and it is done again from the start when
// there is memory: what was refused, and twice as much each time, because a refusal names only what was known by then.
func (s *memoryShare) do(ctx context.Context, do, drop func() error) error {
	needed := int64(0)

	for {
		err := do()

		var full *fullError
		if !errors.As(err, &full) {
			return err
		}

		if err := drop(); err != nil {
			return err
		}

		clear(s.costs)
		s.giveBack() // what was taken after the refusal

		needed = min(max(full.needed, 2*needed), tenantBytes)

		release, err := s.acquire(ctx, s.tenant, needed)
		if err != nil {
			return &noMemoryError{err}
		}

		s.has, s.release = needed, release
	}
}

// fullError says that there is not as much memory now as a share needs. Nobody sees its text.
type fullError struct{ needed int64 }

// Error implements error.
func (e *fullError) Error() string {
	return "there is no memory for a chart or the record of a release now"
}

// noMemoryError is an action that had no memory until its time was over. It says nothing about the action, which was not tried.
type noMemoryError struct{ cause error }

// Error implements error.
func (e *noMemoryError) Error() string {
	return fmt.Sprintf("wait until other large charts and records of releases are done with: %s", e.cause)
}

// Unwrap returns the cause, the error of a context.
func (e *noMemoryError) Unwrap() error { return e.cause }
