package app

import (
	"context"
	"errors"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/component-base/metrics"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

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
