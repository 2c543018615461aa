package embeddedetcd

import (
	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

// lastRevision returns the last revision in the database of the directory; 0 if none can be read, since restores are
// also for damaged databases. Restores take revisions from the clock; the clock may have been set back since an
// earlier restore, so the clock alone is not enough.
//
// The last changes leave no trace if they were deletions and were compacted; etcd goes on from the compaction then.
func lastRevision(dataDir string) int64 {
	revision := int64(0)

	err := snapshot.View(databasePath(dataDir), openTimeout, func(tx *bolt.Tx) error {
		if keys := tx.Bucket(schema.Key.Name()); keys != nil {
			if last, _ := keys.Cursor().Last(); last != nil {
				revision = mvcc.BytesToRev(last).Main
			}
		}

		if meta := tx.Bucket(schema.Meta.Name()); meta != nil {
			if compacted := meta.Get(schema.ScheduledCompactKeyName); compacted != nil {
				revision = max(revision, mvcc.BytesToRev(compacted).Main)
			}
		}

		return nil
	})
	if err != nil {
		return 0
	}

	return revision
}
