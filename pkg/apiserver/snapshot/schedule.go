package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

const (
	// saveTimeout bounds one scheduled snapshot.
	saveTimeout = 30 * time.Minute
	// retryDelay is how long after a failure the next attempt is made, if the interval is not shorter.
	retryDelay = 5 * time.Minute
)

// Schedule takes snapshots again and again. All fields are required.
type Schedule struct {
	// Client is of the etcd. It has one endpoint.
	Client *clientv3.Client
	// DataDir is the directory of the etcd, whose disk must not fill up.
	DataDir string
	// Dir is where the snapshots go. It is made, for its owner only, if it does not exist.
	Dir string
	// Interval is the time from one snapshot to the next, above 0. It continues across restarts: the first snapshot
	// is taken at once if the directory has none, or its newest one is older than Interval.
	Interval time.Duration
	// Retention is how many snapshots are kept, above 0. Files with other names are never removed, and none of the newest
	// Retention snapshots is removed before a new one is complete.
	Retention int
	// Metrics say how it goes.
	Metrics *Metrics
}

// Run takes snapshots until the context ends. What fails is logged, counted and tried again.
func (s *Schedule) Run(ctx context.Context) {
	delay := s.untilFirst(time.Now())

	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}

		taken, err := s.takeOne(ctx, time.Now())
		if ctx.Err() != nil {
			return
		}

		delay = s.next(taken, err)
	}
}

// next logs what went wrong, and returns how long to wait. After a new snapshot that is the interval, even if an old
// one could not be removed: an early retry would take another snapshot, and those would replace the older ones.
func (s *Schedule) next(taken bool, err error) time.Duration {
	delay := s.Interval
	if !taken {
		delay = min(s.Interval, retryDelay)
	}

	if err != nil {
		s.Metrics.failures.Inc()
		klog.ErrorS(err, "The scheduled snapshot of etcd failed; it is tried again", "directory", s.Dir, "taken", taken, "in", delay)
	}

	return delay
}

// untilFirst returns how long to wait for the first snapshot after the start.
func (s *Schedule) untilFirst(now time.Time) time.Duration {
	found, err := InDirectory(s.Dir)
	if err != nil || len(found) == 0 {
		return 0
	}

	// A name with a time in the future comes from before the clock was set back. It does not say when the next
	// snapshot is due, and as a metric it would keep alerts silent until then.
	newest := oldestFirst(found, now)[len(found)-1]
	if newest.Taken.After(now) {
		return 0
	}

	s.Metrics.succeeded(newest.Taken, newest.Size)

	return max(0, newest.Taken.Add(s.Interval).Sub(now))
}

// takeOne takes a snapshot and then removes surplus ones. taken is true once the snapshot exists, even if the removal
// failed.
func (s *Schedule) takeOne(ctx context.Context, now time.Time) (taken bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()

	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return false, fmt.Errorf("make the directory: %w", err)
	}

	if err := removeAbandoned(s.Dir); err != nil {
		return false, err
	}

	if err := s.makeRoom(now, func() error { return CheckSpace(ctx, s.Client, s.Dir, s.DataDir) }); err != nil {
		return false, fmt.Errorf("%w: enlarge the volume, keep fewer snapshots (--etcd-snapshot-retention), or put them elsewhere (--etcd-snapshot-dir)", err)
	}

	path := filepath.Join(s.Dir, nameAt(now))

	info, err := Save(ctx, s.Client, path)
	if err != nil {
		return false, err
	}

	s.Metrics.succeeded(now, info.Size)
	klog.InfoS("Took a snapshot of etcd", "file", path, "bytes", info.Size)

	return true, s.prune(path, now)
}

// makeRoom removes the snapshots above Retention before a new one if that does not fit: somebody has lowered Retention because
// the disk is full.
func (s *Schedule) makeRoom(now time.Time, fits func() error) error {
	err := fits()
	if !errors.Is(err, errNoSpace) {
		return err
	}

	if err := s.prune("", now); err != nil {
		return err
	}

	return fits()
}

// prune removes the oldest snapshots above Retention, but never the one that was just taken and
// verified. taken is empty if none was.
func (s *Schedule) prune(taken string, now time.Time) error {
	found, err := InDirectory(s.Dir)
	if err != nil {
		return err
	}

	var errs []error

	for _, path := range surplus(oldestFirst(found, now), s.Retention, taken) {
		if err := os.Remove(path); err != nil {
			errs = append(errs, fmt.Errorf("remove an old snapshot: %w", err))
		}
	}

	return errors.Join(errs...)
}

// oldestFirst sorts names with a time in the future before all others: they are from before the clock was set back.
// Sorted by name alone, they would be kept until that time, in place of newer snapshots.
func oldestFirst(found []Scheduled, now time.Time) []Scheduled {
	sorted := slices.Clone(found)
	slices.SortStableFunc(sorted, func(a, b Scheduled) int {
		if future := a.Taken.After(now); future != b.Taken.After(now) {
			if future {
				return -1
			}

			return 1
		}

		return a.Taken.Compare(b.Taken)
	})

	return sorted
}

// surplus returns what to remove: the oldest ones above the limit, without the one to keep, which may be empty.
func surplus(found []Scheduled, limit int, keep string) []string {
	others := slices.DeleteFunc(slices.Clone(found), func(s Scheduled) bool { return s.Path == keep })
	if keep != "" {
		limit--
	}

	var paths []string
	for _, old := range others[:max(0, len(others)-limit)] {
		paths = append(paths, old.Path)
	}

	return paths
}

// Names of scheduled snapshots: only files of exactly this form are ever counted or removed.
const (
	namePrefix = "omni-"
	nameSuffix = ".db"
)

// Scheduled is a file in a directory of scheduled snapshots.
type Scheduled struct {
	// Path is the file.
	Path string
	// Taken is when the snapshot was taken, from its name.
	Taken time.Time
	// Size is that of the file, in bytes.
	Size int64
}

// nameAt is the file name of a snapshot taken at a time.
func nameAt(taken time.Time) string {
	return namePrefix + taken.UTC().Format(words.TimeInNames) + nameSuffix
}

// takenAt reads the time of a file name, if it is one that nameAt makes.
func takenAt(name string) (time.Time, bool) {
	text, found := strings.CutPrefix(name, namePrefix)
	text, isDB := strings.CutSuffix(text, nameSuffix)

	taken, err := time.Parse(words.TimeInNames, text)

	return taken, found && isDB && err == nil && nameAt(taken) == name
}

// InDirectory returns the scheduled snapshots in a directory, oldest first. It does not verify them.
// A directory that does not exist has none.
func InDirectory(dir string) ([]Scheduled, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("list the snapshots: %w", err)
	}

	var found []Scheduled

	for _, entry := range entries { // sorted by name, so by time
		taken, ok := takenAt(entry.Name())

		info, err := entry.Info()
		if !ok || err != nil || !info.Mode().IsRegular() {
			continue
		}

		found = append(found, Scheduled{Path: filepath.Join(dir, entry.Name()), Taken: taken, Size: info.Size()})
	}

	return found, nil
}

// Metrics are those of a schedule. Make them with NewMetrics.
type Metrics struct {
	lastSuccess *metrics.Gauge
	lastSize    *metrics.Gauge
	failures    *metrics.Counter
}

// NewMetrics makes the metrics and registers them, for example with legacyregistry.Register.
func NewMetrics(register func(metrics.Registerable) error) (*Metrics, error) {
	m := &Metrics{
		lastSuccess: metrics.NewGauge(&metrics.GaugeOpts{
			Name: "omni_apiserver_etcd_snapshot_last_success_timestamp_seconds",
			Help: "When the newest scheduled snapshot of the embedded etcd was taken, in seconds since 1970. 0 if there is none.",
		}),
		lastSize: metrics.NewGauge(&metrics.GaugeOpts{
			Name: "omni_apiserver_etcd_snapshot_last_size_bytes",
			Help: "Size of the newest scheduled snapshot of the embedded etcd.",
		}),
		failures: metrics.NewCounter(&metrics.CounterOpts{
			Name: "omni_apiserver_etcd_snapshot_failures_total",
			Help: "Scheduled snapshots of the embedded etcd that failed. The log says why.",
		}),
	}

	if err := errors.Join(register(m.lastSuccess), register(m.lastSize), register(m.failures)); err != nil {
		return nil, fmt.Errorf("register the metrics of snapshots: %w", err)
	}

	return m, nil
}

func (m *Metrics) succeeded(at time.Time, size int64) {
	m.lastSuccess.Set(float64(at.Unix()))
	m.lastSize.Set(float64(size))
}
