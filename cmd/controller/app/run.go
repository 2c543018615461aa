package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers"
)

// Run starts the controllers and returns when the context ends.
func Run(ctx context.Context, options *Options) error {
	preferMemory()

	config, err := options.Config()
	if err != nil {
		return err
	}

	if err := waitForStart(ctx, config.Hub, options.StartTimeout); err != nil {
		return err
	}

	addresses, err := options.chartAddresses()
	if err != nil {
		return err
	}

	mgr, err := manager.New(config.Hub, config.Manager)
	if err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}

	if err := addHealthChecks(mgr); err != nil {
		return err
	}

	if err := controllers.Add(ctx, mgr, controllers.Options{
		Registry:          ctrlmetrics.Registry,
		SettleTime:        options.DestroySettleTime,
		ManagementCluster: options.ManagementClusterName,
		ChartAddresses:    addresses,
		Limits:            options.Limits,
		Concurrency:       options.Concurrency,
	}); err != nil {
		return err
	}

	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the controllers: %w", err)
	}

	return nil
}

// addHealthChecks makes the process ready when its caches are complete. A
// controller that waits for the lease is ready too: it could take over.
func addHealthChecks(mgr manager.Manager) error {
	var synced atomic.Bool

	if err := mgr.Add(&afterSync{manager: mgr, synced: &synced}); err != nil {
		return fmt.Errorf("add the readiness check: %w", err)
	}

	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add the health check: %w", err)
	}

	if err := mgr.AddReadyzCheck("caches", func(*http.Request) error {
		if !synced.Load() {
			return errors.New("the caches are not complete yet")
		}

		return nil
	}); err != nil {
		return fmt.Errorf("add the readiness check: %w", err)
	}

	return nil
}

// afterSync notes when the caches are complete, whether or not this process leads.
type afterSync struct {
	manager manager.Manager
	synced  *atomic.Bool
}

// Start implements manager.Runnable.
func (a *afterSync) Start(ctx context.Context) error {
	a.synced.Store(a.manager.GetCache().WaitForCacheSync(ctx))

	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (a *afterSync) NeedLeaderElection() bool { return false }
