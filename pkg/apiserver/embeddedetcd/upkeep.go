package embeddedetcd

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/disk"
)

const (
	// lookInterval is how often etcd is asked for its state.
	lookInterval   = 10 * time.Second
	requestTimeout = 10 * time.Second
	// slowTimeout bounds compactions and defragmentations, which go through the whole database.
	slowTimeout = 10 * time.Minute
)

// Keeper maintains the database of one etcd. Set all exported fields, then call Run.
type Keeper struct {
	// Client is a client of the etcd, with one endpoint.
	Client *clientv3.Client
	// DataDir is the directory of the etcd, whose file system needs room for a second database during
	// a defragmentation.
	DataDir string
	// Quota is the limit that etcd was started with, in bytes.
	Quota int64
	// DefragmentInterval is the least time between defragmentations, and before the first one, and how long space has to be
	// unused. 0 means never, except for a full database.
	DefragmentInterval time.Duration
	// Metrics say how it goes.
	Metrics *UpkeepMetrics

	notice atomic.Pointer[string]
	last   time.Time // end of the last attempt to defragment, or the start
	since  time.Time // begin of the interval in which nothing may need the free space
	needed int64     // the most that was in use in it, in bytes
}

// Run maintains the database until the context ends. It logs failures and tries again.
func (k *Keeper) Run(ctx context.Context) {
	k.last = time.Now()
	k.since = k.last

	for {
		if err := k.Look(ctx); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "The upkeep of etcd failed; it is tried again", "in", lookInterval)
		}

		select {
		case <-ctx.Done():
			return
		case <-time.After(lookInterval):
		}
	}
}

// Notice says what is wrong with the database, for people; empty if all is well.
func (k *Keeper) Notice() string {
	if notice := k.notice.Load(); notice != nil {
		return *notice
	}

	return ""
}

// Look does one round of what Run does.
func (k *Keeper) Look(ctx context.Context) error {
	s, err := k.state(ctx)
	if err != nil {
		return err
	}

	s.needed = k.neededOf(s)

	switch decideUpkeep(s, isDue(k.last, time.Now(), k.DefragmentInterval)) {
	case defragment:
		err = k.defragment(ctx, s)
	case makeRoomAtQuota:
		err = k.makeRoom(ctx, s)
	case disarm:
		err = k.disarm(ctx)
	case nothing:
		return nil
	}

	if err != nil {
		return err
	}

	_, err = k.state(ctx)

	return err
}

// neededOf returns how much of the file was needed within an interval. Until the interval is over that is not known: all of
// it.
func (k *Keeper) neededOf(s databaseState) int64 {
	k.needed = max(k.needed, s.inUse)

	now := time.Now()
	if !isDue(k.since, now, k.DefragmentInterval) {
		return s.size
	}

	needed := k.needed
	k.since, k.needed = now, 0

	return needed
}

// state reads etcd's state, and publishes it in the metrics and the notice.
func (k *Keeper) state(ctx context.Context) (databaseState, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	status, err := k.Client.Status(ctx, k.Client.Endpoints()[0])
	if err != nil {
		return databaseState{}, fmt.Errorf("ask etcd for its state: %w", err)
	}

	alarms, err := k.Client.AlarmList(ctx)
	if err != nil {
		return databaseState{}, fmt.Errorf("ask etcd for its alarms: %w", err)
	}

	s := databaseState{size: status.DbSize, inUse: status.DbSizeInUse, quota: k.Quota, revision: status.Header.GetRevision()}

	for _, alarm := range alarms.Alarms {
		switch alarm.GetAlarm() { //nolint:exhaustive // NONE is no alarm
		case etcdserverpb.AlarmType_NOSPACE:
			s.full = true
		case etcdserverpb.AlarmType_CORRUPT:
			s.corrupt = true
		}
	}

	k.Metrics.observe(s)

	notice := describeState(s)
	if before := k.notice.Swap(&notice); notice != "" && (before == nil || *before == "") {
		klog.ErrorS(nil, "The embedded etcd needs attention", "what", notice)
	}

	return s, nil
}

// makeRoom makes a full etcd writable again, if its live content is small enough. The API server's own compaction
// cannot help: it writes a key first.
func (k *Keeper) makeRoom(ctx context.Context, s databaseState) error {
	slow, cancel := context.WithTimeout(ctx, slowTimeout)
	defer cancel()

	// etcd refuses all writes, so nobody needs the earlier revisions any more.
	if _, err := k.Client.Compact(slow, s.revision, clientv3.WithCompactPhysical()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact a full etcd: %w", err)
	}

	s, err := k.state(ctx)
	if err != nil {
		return err
	}

	if decideFull(s) == defragment {
		if err := k.defragment(ctx, s); err != nil {
			return err
		}

		if s, err = k.state(ctx); err != nil {
			return err
		}
	}

	if decideUpkeep(s, false) != disarm {
		return nil
	}

	return k.disarm(ctx)
}

// disarm clears the alarm, so that etcd accepts writes again.
func (k *Keeper) disarm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	alarms, err := k.Client.AlarmList(ctx)
	if err != nil {
		return fmt.Errorf("ask etcd for its alarms: %w", err)
	}

	for _, alarm := range alarms.Alarms {
		if alarm.GetAlarm() != etcdserverpb.AlarmType_NOSPACE {
			continue
		}

		if _, err := k.Client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
			return fmt.Errorf("take back the alarm of etcd: %w", err)
		}
	}

	klog.InfoS("The database of the embedded etcd has room again; writing goes on")

	return nil
}

// defragment removes the free space from the file. Meanwhile etcd answers no request.
func (k *Keeper) defragment(ctx context.Context, before databaseState) error {
	ctx, cancel := context.WithTimeout(ctx, slowTimeout)
	defer cancel()

	begin := time.Now()

	err := errors.Join(k.roomForCopy(before), before.roomInMemory(memoryUse()))
	if err == nil {
		_, err = k.Client.Defragment(ctx, k.Client.Endpoints()[0])
	}

	k.last = time.Now()
	k.since, k.needed = k.last, 0
	took := k.last.Sub(begin)
	k.Metrics.observeDefragmentation(took, err)

	if err != nil {
		return fmt.Errorf("defragment etcd: %w", err)
	}

	klog.InfoS("Defragmented etcd", "took", took, "bytesBefore", before.size, "bytesInUse", before.inUse)

	return nil
}

// roomForCopy fails if the copy could fill up the disk, which would end etcd.
func (k *Keeper) roomForCopy(s databaseState) error {
	free, err := disk.Free(k.DataDir)
	if err != nil {
		return err
	}

	if needed := s.inUse + s.inUse/4; free < needed {
		return fmt.Errorf("%s has %d bytes free, a copy of the database needs %d: enlarge the volume", k.DataDir, free, needed)
	}

	return nil
}

// memoryUse returns Go's limit of memory, and how much is in use, in bytes.
func memoryUse() (limit, used int64) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)

	return debug.SetMemoryLimit(-1), int64(sample[0].Value.Uint64()) //nolint:gosec // no heap is that large
}

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
