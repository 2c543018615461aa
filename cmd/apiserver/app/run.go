package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/cmd/internal/garbage"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
	"omni.texashpc.com/omni-cluster-operator/pkg/version"
)

// Run serves until the context ends. The embedded etcd starts before the server and stops after it. A stop during the
// start is no error.
func Run(ctx context.Context, options *Options) error {
	klog.InfoS("Starting omni-apiserver", "version", version.Get().String(), "objectsAreIn", options.whereObjectsAre())

	garbage.Configure(garbage.APIServer, 0)

	go garbage.GiveBack(ctx)

	err := run(ctx, options)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		klog.InfoS("Stopped before it served, because it was told to", "whileItTriedTo", err.Error())

		return nil
	}

	return err
}

// whereObjectsAre describes the storage in the log.
func (o *Options) whereObjectsAre() string {
	if o.EtcdDataDir == "" {
		return "etcd at " + strings.Join(o.Storage.StorageConfig.Transport.ServerList, ", ")
	}

	return "the embedded etcd in " + o.EtcdDataDir
}

func run(ctx context.Context, options *Options) error {
	// The timeout starts here, before the embedded etcd is ready: with a large database on a slow disk, etcd may need most of it.
	startBy := time.Now().Add(startTimeout)

	if options.EtcdDataDir == "" {
		return serve(ctx, options, startBy, nil, nil)
	}

	starting, cancelStart := until(ctx, startBy)
	etcd, err := embeddedetcd.Start(starting, options.EtcdDataDir, embeddedetcd.Quota(options.Embedded.QuotaBytes),
		embeddedetcd.Snapshots(options.Embedded.snapshotDir(options.EtcdDataDir)))

	cancelStart()

	if err != nil {
		return err
	}

	options.Storage.StorageConfig.Transport.ServerList = []string{etcd.Endpoint()}

	ctx, cancel := etcd.WhileRunning(ctx)
	defer cancel()

	upkeep, err := startUpkeep(ctx, etcd, options, legacyregistry.Register)
	if err != nil {
		return errors.Join(err, etcd.Stop())
	}

	err = serve(ctx, options, startBy, etcd, upkeep.notice)
	if cause := context.Cause(ctx); errors.Is(cause, embeddedetcd.ErrStopped) {
		err = errors.Join(err, cause)
	}

	return errors.Join(err, upkeep.stop(), etcd.Stop())
}

// until bounds a start.
func until(ctx context.Context, startBy time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(ctx, startBy, fmt.Errorf("gave up after %s", startTimeout))
}

// serve runs the API server after the servers that it needs have answered in time. Without an external etcd, etcd is the
// embedded one, and notice says what is wrong with it.
func serve(ctx context.Context, options *Options, startBy time.Time, etcd *embeddedetcd.Server, notice func() string) error {
	starting, cancel := until(ctx, startBy)
	config, err := options.Config(starting)

	cancel()

	if err != nil {
		return err
	}

	if etcd != nil {
		apiserver.StoreIn(&config.Generic.Config, etcd.Storage)
	}

	if notice != nil {
		apiserver.ReportStorageSpace(&config.Generic.Config, notice)
	}

	pair := options.Serving.ServerCert.CertKey
	if err := apiserver.TellServingCertificate(&config.Generic.Config,
		apiserver.ServingFiles{Certificate: pair.CertFile, Key: pair.KeyFile}, legacyregistry.Register); err != nil {
		return err
	}

	server, err := config.Complete().New()
	if err != nil {
		return err
	}

	if err := legacyregistry.CustomRegister(server.Ledger.Collector()); err != nil {
		server.Generic.Destroy()

		return fmt.Errorf("register the metrics of what is stored: %w", err)
	}

	return server.Run(ctx)
}
