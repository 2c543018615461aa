package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/component-base/metrics"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

const (
	minSnapshotInterval   = time.Minute
	minDefragmentInterval = time.Minute
)

// EmbeddedEtcdOptions are the flags of the embedded etcd. They are refused with an external etcd, which has such
// settings of its own.
type EmbeddedEtcdOptions struct {
	// QuotaBytes limits the database file, in bytes.
	QuotaBytes int64
	// SnapshotInterval is the time between scheduled snapshots; 0 means none.
	SnapshotInterval time.Duration
	// SnapshotDir is the directory of the snapshots; empty means the directory snapshots in the data directory.
	SnapshotDir string
	// SnapshotRetention is how many of them are kept.
	SnapshotRetention int
	// DefragmentInterval is the least time between defragmentations; 0 means never.
	DefragmentInterval time.Duration
}

// newEmbeddedEtcdOptions returns the defaults. Snapshots are on: users of the embedded etcd seldom have another
// backup, and need one after somebody has deleted too much.
func newEmbeddedEtcdOptions() EmbeddedEtcdOptions {
	return EmbeddedEtcdOptions{
		QuotaBytes:         embeddedetcd.DefaultQuota,
		SnapshotInterval:   12 * time.Hour,
		SnapshotRetention:  5,
		DefragmentInterval: time.Hour,
	}
}

func (o *EmbeddedEtcdOptions) addFlags(flags *pflag.FlagSet) {
	flags.Int64Var(&o.QuotaBytes, "etcd-quota-backend-bytes", o.QuotaBytes,
		"Largest size in bytes of the database of --etcd-data-dir. At the limit, writes are refused; reads and most deletions go on.")
	flags.DurationVar(&o.SnapshotInterval, "etcd-snapshot-interval", o.SnapshotInterval,
		"Time between snapshots of --etcd-data-dir, across restarts. 0: none are taken.")
	flags.StringVar(&o.SnapshotDir, "etcd-snapshot-dir", o.SnapshotDir,
		"Directory for the snapshots, best on another volume. Default: snapshots in --etcd-data-dir. While the newest one "+
			"has objects, an empty --etcd-data-dir is refused.")
	flags.IntVar(&o.SnapshotRetention, "etcd-snapshot-retention", o.SnapshotRetention,
		"How many of these snapshots are kept; older ones are removed once a new one is complete.")
	flags.DurationVar(&o.DefragmentInterval, "etcd-defragment-interval", o.DefragmentInterval,
		"Least time between two defragmentations of --etcd-data-dir, which happen only when nothing needed at least half "+
			"of the file for that long, or a fifth of a file that has reached 80 % of its quota is free. Requests wait for the duration of one. "+
			"0: only a full database is defragmented.")
}

func (o *EmbeddedEtcdOptions) snapshotDir(dataDir string) string {
	return cmp.Or(o.SnapshotDir, filepath.Join(dataDir, embeddedetcd.SnapshotsDir))
}

func (o *EmbeddedEtcdOptions) validate() []error {
	var errs []error

	if o.QuotaBytes < embeddedetcd.MinQuota || o.QuotaBytes > embeddedetcd.MaxQuota {
		errs = append(errs, fmt.Errorf("--etcd-quota-backend-bytes: %d is not between %d (64 MiB) and %d (8 GiB)",
			o.QuotaBytes, embeddedetcd.MinQuota, embeddedetcd.MaxQuota))
	}

	if o.SnapshotInterval != 0 && o.SnapshotInterval < minSnapshotInterval {
		errs = append(errs, fmt.Errorf("--etcd-snapshot-interval: %s is below %s; use 0 for no snapshots",
			o.SnapshotInterval, minSnapshotInterval))
	}

	if o.SnapshotRetention < 1 {
		errs = append(errs, fmt.Errorf("--etcd-snapshot-retention: %d is below 1; use --etcd-snapshot-interval=0 for no snapshots",
			o.SnapshotRetention))
	}

	if o.DefragmentInterval != 0 && o.DefragmentInterval < minDefragmentInterval {
		errs = append(errs, fmt.Errorf("--etcd-defragment-interval: %s is below %s; use 0 for no defragmentation",
			o.DefragmentInterval, minDefragmentInterval))
	}

	return errs
}

// validateUnused refuses settings that would have no effect.
func (o *EmbeddedEtcdOptions) validateUnused() []error {
	if *o == newEmbeddedEtcdOptions() {
		return nil
	}

	return []error{errors.New("--etcd-quota-backend-bytes, --etcd-snapshot-* and --etcd-defragment-interval are about the etcd of " +
		"--etcd-data-dir and have no effect on that of --etcd-servers: set them there, and run omni-apiserver snapshot save on a schedule")}
}

// etcdUpkeep is the work that runs beside the embedded etcd, for as long as that runs.
type etcdUpkeep struct {
	// notice says what is wrong with the database.
	notice func() string

	client  *clientv3.Client
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// startUpkeep starts the upkeep of the database and the scheduled snapshots.
func startUpkeep(ctx context.Context, etcd *embeddedetcd.Server, options *Options, register func(metrics.Registerable) error) (*etcdUpkeep, error) {
	embedded := options.Embedded

	client, err := etcd.Client()
	if err != nil {
		return nil, err
	}

	databaseMetrics, err := embeddedetcd.NewUpkeepMetrics(register)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}

	snapshotMetrics, err := snapshot.NewMetrics(register)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}

	keeper := &embeddedetcd.Keeper{
		Client: client, DataDir: options.EtcdDataDir, Quota: embedded.QuotaBytes,
		DefragmentInterval: embedded.DefragmentInterval, Metrics: databaseMetrics,
	}

	ctx, cancel := context.WithCancel(ctx)
	u := &etcdUpkeep{notice: keeper.Notice, client: client, cancel: cancel}
	u.running.Go(func() { keeper.Run(ctx) })

	if embedded.SnapshotInterval > 0 {
		schedule := &snapshot.Schedule{
			Client: client, DataDir: options.EtcdDataDir, Dir: embedded.snapshotDir(options.EtcdDataDir),
			Interval: embedded.SnapshotInterval, Retention: embedded.SnapshotRetention, Metrics: snapshotMetrics,
		}

		u.running.Go(func() { schedule.Run(ctx) })
	}

	return u, nil
}

// stop ends all of that work and waits for it. It abandons a snapshot that is being written.
func (u *etcdUpkeep) stop() error {
	u.cancel()
	u.running.Wait()

	if err := u.client.Close(); err != nil {
		return fmt.Errorf("disconnect from the embedded etcd: %w", err)
	}

	return nil
}
