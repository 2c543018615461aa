package embeddedetcd

import (
	"fmt"
	"time"
)

const (
	// worthwhileSize is the size of the file below which free space in it does not matter, in bytes.
	worthwhileSize = 64 << 20
	// manyFree is the share of the file, in percent, above which it is defragmented if nothing needed that space for an
	// interval. Each compaction leaves much free under lasting writes, which need it again: there a defragmentation would
	// stop the API for a moment, and take memory for the copy, for nothing.
	manyFree = 50
	// manyFreeNearQuota is the same share for a file whose size is near the quota (nearQuota).
	manyFreeNearQuota = 20
	// nearQuota is the share of the quota, in percent, above which manyFreeNearQuota applies.
	nearQuota = 80
	// warnQuota is the share of the quota, in percent, above which the log warns.
	warnQuota = 90
	// recoverable is the share of the quota, in percent, below which the content must be before the alarm is cleared.
	// Otherwise the next writes would raise it again.
	recoverable = 90
)

// databaseState is what etcd says about its database. Sizes are in bytes.
type databaseState struct {
	size     int64 // of the file
	inUse    int64 // of the file without free pages
	needed   int64 // the most that was in use within an interval
	quota    int64
	revision int64
	full     bool // the alarm NOSPACE: writes are refused
	corrupt  bool // the alarm CORRUPT
}

// upkeepAction is what to do next.
type upkeepAction int

const (
	nothing upkeepAction = iota
	defragment
	makeRoomAtQuota // compact, then look again
	disarm
)

// percent returns how much of the whole a part is.
func percent(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}

	return part * 100 / whole
}

func (s databaseState) free() int64   { return percent(s.size-s.inUse, s.size) }
func (s databaseState) unused() int64 { return percent(s.size-max(s.needed, s.inUse), s.size) }
func (s databaseState) used() int64   { return percent(s.size, s.quota) }

// decideUpkeep returns the next action for a state. due says whether a defragmentation that is not urgent may happen now.
func decideUpkeep(s databaseState, due bool) upkeepAction {
	switch {
	case s.full && s.used() < recoverable:
		return disarm
	case s.full:
		return makeRoomAtQuota
	case s.size < worthwhileSize || !due:
		return nothing
	case s.unused() >= manyFree, s.used() >= nearQuota && s.free() >= manyFreeNearQuota:
		return defragment
	}

	return nothing
}

// roomInMemory fails if the copy might not fit below the limit of memory: the process would be killed, and try again after
// its start. A full database is copied all the same: nothing else makes it writable.
//
// Measured, 96 MiB in use took 196 MiB: etcd copies 10,000 keys in one transaction, which holds all its pages.
func (s databaseState) roomInMemory(limit, used int64) error {
	if needed := 2 * s.inUse; !s.full && used+needed > limit {
		return fmt.Errorf("a copy of the database takes about %s of memory, and %s of %s are free: give omni-apiserver more memory",
			mebibytes(needed), mebibytes(max(limit-used, 0)), mebibytes(limit))
	}

	return nil
}

// decideFull says what to do about a full database after a compaction.
func decideFull(s databaseState) upkeepAction {
	if s.used() >= recoverable && percent(s.inUse, s.quota) < recoverable {
		return defragment
	}

	return nothing
}

// describeState is for people; empty if all is well.
func describeState(s databaseState) string {
	sizes := fmt.Sprintf("the database has %s of %s (--etcd-quota-backend-bytes), %s of them in use",
		mebibytes(s.size), mebibytes(s.quota), mebibytes(s.inUse))

	switch {
	case s.corrupt:
		return "etcd found its database to be damaged and serves nothing: restore a snapshot (omni-apiserver snapshot restore --help)"
	case s.full:
		return "every write is refused: " + sizes + "; reading works, and so does deleting objects without finalizers. " +
			"Delete what is not needed, and writing goes on by itself, mostly within a minute; or start omni-apiserver with a higher quota"
	case s.used() >= warnQuota:
		return "writes will soon be refused: " + sizes + "; start omni-apiserver with a higher quota, or delete what is not needed"
	}

	return ""
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }

// isDue reports whether the interval has passed since the last defragmentation. An interval of 0 means
// never.
func isDue(last, now time.Time, interval time.Duration) bool {
	return interval > 0 && now.Sub(last) >= interval
}
