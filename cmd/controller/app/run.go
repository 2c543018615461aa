// Package app is the command line of omni-controller: Options -> Validate -> Config -> Run. It connects the parts,
// and runs the checks that have to pass before any part may start. It has no other logic.
package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"omni.texashpc.com/omni-cluster-operator/cmd/internal/garbage"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers"
	"omni.texashpc.com/omni-cluster-operator/pkg/hub"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/pkg/version"
)

const description = `omni-controller makes Omni follow the objects of the API group omni.texashpc.com.

It serves one namespace (its own, unless --namespace says otherwise) and needs rights there only,
and to read eight names of custom resource definitions: it refuses to start beside those of the
operator that served the same group before, because deleting them would destroy real clusters.`

// NewCommand makes the omni-controller command. The controller runs until the
// context ends.
func NewCommand(ctx context.Context) *cobra.Command {
	options := NewOptions()

	command := &cobra.Command{
		Use:   "omni-controller",
		Short: "Make Omni follow the objects of omni.texashpc.com",
		Long:  description,
		Args:  cobra.NoArgs,
		// Version makes cobra answer --version.
		Version: version.Get().String(),
		RunE: func(*cobra.Command, []string) error {
			if err := options.Validate(); err != nil {
				return err
			}

			if err := setVerbosity(options.Verbosity); err != nil {
				return err
			}

			ctrl.SetLogger(klog.NewKlogr())

			return Run(ctx, options)
		},
	}

	options.AddFlags(command.Flags())
	command.Flags().Bool("version", false, "Print the version and exit.")
	command.AddCommand(newCheckCommand(ctx))

	return command
}

// setVerbosity sets klog's verbosity, which klog takes only from its own flag.
func setVerbosity(verbosity int) error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)

	if err := flags.Set("v", strconv.Itoa(verbosity)); err != nil {
		return fmt.Errorf("set the verbosity of the log: %w", err)
	}

	return nil
}

// Run starts the controllers and returns when the context ends. A stop while it waits for the API is no error.
func Run(ctx context.Context, options *Options) error {
	garbage.Configure(garbage.Controller, options.renderingMemory())

	go garbage.GiveBack(ctx)

	config, err := options.Config()
	if err != nil {
		return err
	}

	clock := &skew.Clock{}
	config.Hub.Wrap(clock.Wrap)

	klog.InfoS("Starting omni-controller", "version", version.Get().String(), "serves", options.serves(), "managementCluster", config.Hub.Host)

	mapper, hubID, err := options.askHub(ctx, config.Hub)
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			klog.InfoS("Stopped before it worked, because it was told to", "whileItTriedTo", err.Error())

			return nil
		}

		return err
	}

	klog.InfoS("The hub in marks of ownership", "id", hubID)

	if err := options.checkExportNamespaces(ctx, config.Hub); err != nil {
		return err
	}

	config.Manager.Cache = options.cacheOptions()
	config.Manager.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil }

	wanted, err := options.controllers(hubID, clock)
	if err != nil {
		return err
	}

	return runControllers(ctx, config, wanted)
}

// runControllers puts the controllers together, and runs them until the context ends.
func runControllers(ctx context.Context, config *Config, wanted controllers.Options) error {
	mgr, err := newManager(config)
	if err != nil {
		return err
	}
	defer mgr.events.Stop()

	if err := addHealthChecks(mgr); err != nil {
		return err
	}

	if err := addDefinitionsWatch(mgr, config.Hub); err != nil {
		return err
	}

	if err := controllers.Add(ctx, mgr, wanted); err != nil {
		return err
	}

	if err := explainLost(mgr.Start(ctx)); err != nil {
		return fmt.Errorf("run the controllers: %w", err)
	}

	return nil
}

// controllers returns what the controllers need of the options. It fails if a rule of the options cannot be read.
func (o *Options) controllers(hubID string, clock *skew.Clock) (controllers.Options, error) {
	guard, err := o.guard()
	if err != nil {
		return controllers.Options{}, err
	}

	endpoints, err := o.endpointPolicy()
	if err != nil {
		return controllers.Options{}, err
	}

	sources, err := o.sources()
	if err != nil {
		return controllers.Options{}, err
	}

	return controllers.Options{
		Registry:          ctrlmetrics.Registry,
		SettleTime:        o.DestroySettleTime,
		JoinSettleTime:    o.JoinSettleTime,
		ManagementCluster: o.ManagementClusterName,
		HubID:             hubID,
		Namespace:         o.servedNamespace(),
		Deletion:          o.deletionRights(),
		ExportNamespaces:  o.ExportNamespaces,
		Endpoints:         endpoints,
		Sources:           sources,
		Guard:             guard,
		Rendering:         o.rendering(),
		Limits:            o.Limits,
		Rollouts:          o.Rollouts,
		RolloutReadyTime:  o.RolloutReadyTime,
		ServerClock:       clock.Ahead,
		HubClock:          clock.HubAhead,
		Skew:              clock.Worst,
		Concurrency:       o.Concurrency,
	}, nil
}

// startRole is the ClusterRole that allows the requests of the start-up checks.
const startRole = "omni-controller-crd-check"

// askHub waits until the controller may start, and returns what it has learned about the hub.
func (o *Options) askHub(ctx context.Context, config *rest.Config) (meta.RESTMapper, string, error) {
	mapper, err := waitForStart(ctx, config, o)
	if err != nil {
		return nil, "", err
	}

	id, err := hub.Identify(ctx, config, o.HubID, startRole)

	return mapper, id, err
}

// servedNamespace returns the namespace that is served; empty: all.
func (o *Options) servedNamespace() string {
	if o.AllNamespaces {
		return ""
	}

	return o.Namespace
}

// deletionRights returns what outlives the deletion of the namespace that is served until the controllers have cleaned up.
func (o *Options) deletionRights() controllers.DeletionRights {
	rights := controllers.DeletionRights{Namespace: o.servedNamespace(), RoleBinding: o.RoleBinding, Lease: leaseName}
	if o.LeaderElect {
		rights.LeaseNamespace = o.leaseNamespace()
	}

	return rights
}

// serves describes in the log which objects are served.
func (o *Options) serves() string {
	if o.AllNamespaces {
		return "all namespaces"
	}

	return "namespace " + o.Namespace
}

// addDefinitionsWatch continues the start-up check for definitions while the controller runs.
func addDefinitionsWatch(mgr manager.Manager, hub *rest.Config) error {
	watch, err := newDefinitionsWatch(hub)
	if err != nil {
		return err
	}

	if err := mgr.Add(watch); err != nil {
		return fmt.Errorf("add the watch for definitions: %w", err)
	}

	return nil
}

// addHealthChecks makes the process ready when its caches are complete. A controller that waits for the lease is
// ready as well: it could take over.
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

// afterSync records when the caches are complete, whether or not this process leads.
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

// until repeats a check until it succeeds, or waiting does not help (errRefused), or the context ends, and returns the last result.
// Before each pause, waits is called with the reason.
func until(ctx context.Context, pause time.Duration, check func(context.Context) error, waits func(reason error)) error {
	var reason error

	for {
		err := check(ctx)
		if err == nil || errors.Is(err, errRefused) {
			return err
		}

		// The end of the context cut this attempt short: its error says less than the one before.
		if reason == nil || ctx.Err() == nil {
			reason = err
		}

		waits(reason)

		select {
		case <-ctx.Done():
			return reason
		case <-time.After(pause):
		}
	}
}
