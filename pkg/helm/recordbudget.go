package helm

import (
	"context"
	"errors"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/records"
)

// What this process holds of Helm's records, and of the manifests in them, while actions and comparisons run. Whoever may
// write Secrets in a workload cluster can write records that become as large as may be.
const (
	// totalRecordBytes is how much that may be together, in bytes, and tenantRecordBytes how much of it one namespace may
	// have: more than half, so that of those that take more than that only one is there.
	totalRecordBytes  = 128 << 20
	tenantRecordBytes = 80 << 20

	// recordCopies and recordManifestCopies are how often the text is there.
	recordCopies, recordManifestCopies = 1, 2
)

// What has room beside records, under names that no record has.
const (
	// joinedManifest is the manifest that was joined from those of several revisions.
	joinedManifest = "joined manifest"
	// olderRevisions is what is kept of revisions whose records are not.
	olderRevisions = "older revisions"
)

// recordMemory is the room of the process for records. It is apart from that for charts: who has room here may wait
// there, and who has room there waits here for nothing, because an action reads its records before it has a chart
// rendered.
//
//nolint:gochecknoglobals // the memory is the process's, too
var recordMemory = newMemoryBudget(totalRecordBytes, tenantRecordBytes, smallBytes, "other large records of releases are done with")

// recordRoom is what one action or comparison has of the room for records; nil has as much as it wants. It is not safe
// for concurrent use.
type recordRoom struct {
	tenant string

	costs   map[string]int64 // of what it holds, by the names of the records
	has     int64
	release func()
}

func newRecordRoom(tenant string) *recordRoom {
	return &recordRoom{tenant: tenant, costs: map[string]int64{}, release: func() {}}
}

// admit takes room for a record. If there is none now, what was read before has to be dropped, too, and the error says how
// much room to wait for: two that keep what they have and wait for more would wait for each other.
func (r *recordRoom) admit(name string, size records.Size) error {
	if r == nil {
		return nil
	}

	r.costs[name] = costOf(size.Record, recordCopies) + costOf(size.Manifests, recordManifestCopies)

	needed := int64(0)
	for _, cost := range r.costs {
		needed += cost
	}

	if needed = min(needed, tenantRecordBytes); needed <= r.has {
		return nil
	}

	r.giveBack()

	release, ok := recordMemory.try(r.tenant, needed)
	if !ok {
		return &recordsFullError{needed}
	}

	r.has, r.release = needed, release

	return nil
}

// forget is told of a record that is not held any more. Its room serves the next one.
func (r *recordRoom) forget(name string) {
	if r != nil {
		delete(r.costs, name)
	}
}

// giveBack gives the room back.
func (r *recordRoom) giveBack() {
	r.release()
	r.has, r.release = 0, func() {}
}

// await waits for so much room, with nothing read.
func (r *recordRoom) await(ctx context.Context, needed int64) error {
	release, err := recordMemory.enter(ctx, r.tenant, needed)
	if err != nil {
		return err
	}

	clear(r.costs)
	r.has, r.release = needed, release

	return nil
}

// recordsFullError is a record for which there is no room now.
type recordsFullError struct{ cost int64 }

// Error implements error. Nobody sees it: what it says is waited for.
func (e *recordsFullError) Error() string {
	return "there is no room for the record of the release now"
}

// inRoom does something that reads records, and does it again from the start when there is room for what it has to read.
// Drop drops what was read, before it waits. Each wait is for twice the room of the one before at least, up to what one
// namespace may have: a refusal names only what was read until then, and the waits have to end.
func (r *recordRoom) inRoom(ctx context.Context, do, drop func() error) error {
	needed := int64(0)

	for {
		err := do()

		var full *recordsFullError
		if !errors.As(err, &full) {
			return err
		}

		if err := drop(); err != nil {
			return err
		}

		needed = min(max(full.cost, 2*needed), tenantRecordBytes)
		if err := r.await(ctx, needed); err != nil {
			return err
		}
	}
}
