package helm

import (
	"context"

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
	*room

	costs map[string]int64 // of what it holds, by the names of the records
}

func newRecordRoom(tenant string) *recordRoom {
	return &recordRoom{room: recordMemory.roomFor(tenant), costs: map[string]int64{}}
}

// admit takes room for a record. If there is none now, what was read before has to be dropped, too.
func (r *recordRoom) admit(name string, size records.Size) error {
	if r == nil {
		return nil
	}

	r.costs[name] = costOf(size.Record, recordCopies) + costOf(size.Manifests, recordManifestCopies)

	needed := int64(0)
	for _, cost := range r.costs {
		needed += cost
	}

	return r.take(needed)
}

// forget is told of a record that is not held any more. Its room serves the next one.
func (r *recordRoom) forget(name string) {
	if r != nil {
		delete(r.costs, name)
	}
}

// inRoom does something that reads records, when there is room for what it has to read. Drop drops what was read.
func (r *recordRoom) inRoom(ctx context.Context, do, drop func() error) error {
	return r.room.inRoom(ctx, do, func() error {
		clear(r.costs)

		return drop()
	})
}
