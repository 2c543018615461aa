// Package app is the command line of omni-apiserver. It parses flags into Options, completes and validates them, and
// turns them into the configuration that pkg/apiserver runs. Around the server it starts and stops the embedded etcd with its upkeep
// and scheduled snapshots. The commands snapshot save, restore and status are here, too.
package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/cmd/internal/garbage"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/logging"
	"omni.texashpc.com/omni-cluster-operator/pkg/version"
)

const description = `omni-apiserver serves the API group omni.texashpc.com: it stores and validates
OmniConnections, OmniClusters and the other kinds, and never calls Omni itself.

It runs behind a kube-apiserver, which finds it through an APIService. Inside a cluster it needs
--etcd-data-dir (or --etcd-servers) and a serving certificate; outside, --kubeconfig as well.`

// helpColumns is the column at which the lines of --help are wrapped.
const helpColumns = 110

// NewCommand makes the omni-apiserver command. The server runs until the context ends.
func NewCommand(ctx context.Context) *cobra.Command {
	options := NewOptions()

	command := &cobra.Command{
		Use:   "omni-apiserver",
		Short: "Serve the API group omni.texashpc.com",
		Long:  description,
		Args:  cobra.NoArgs,
		// Version makes cobra answer --version.
		Version: version.Get().String(),
		// The usage has hundreds of lines; nobody would see the error above it.
		SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			logging.OmitBodies()

			if err := options.Complete(); err != nil {
				return err
			}

			if err := options.Validate(); err != nil {
				return err
			}

			return Run(ctx, options)
		},
	}

	sections := options.Flags()
	// Without this flag cobra would add one of its own, which also takes the shorthand -v.
	sections.FlagSet("omni").Bool("version", false, "Print the version and exit.")

	for _, section := range sections.FlagSets {
		command.Flags().AddFlagSet(section)
	}

	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w: see omni-apiserver --help", err)
	})
	cliflag.SetUsageAndHelpFunc(command, sections, helpColumns)

	command.AddCommand(newSnapshotCommand(ctx))

	return command
}

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

const (
	// shutdownDelayFlag is a flag of the library.
	shutdownDelayFlag = "shutdown-delay-duration"

	// replicaShutdownDelay is how long one of several replicas goes on serving after /readyz fails, by default. In
	// the first half load balancers notice that; in the second half clients are sent to other replicas.
	replicaShutdownDelay = 10 * time.Second
)

// addServerFlags adds the library's flags about serving, with help texts that say what is different here.
func (o *Options) addServerFlags(flags *pflag.FlagSet) {
	o.Server.AddUniversalFlags(flags)

	flags.Lookup(shutdownDelayFlag).Usage = "How long to go on serving after SIGTERM while /readyz fails. In the first half " +
		"of it load balancers notice; in the second half clients are asked to take their connections to another replica. " +
		"Default: 10s with --etcd-servers, none with --etcd-data-dir, where there is no other replica."
	o.shutdownDelayGiven = func() bool { return flags.Changed(shutdownDelayFlag) }
}

// completeShutdown sets the default shutdown delay. With an external etcd there can be other replicas, which take
// over during the delay. With the embedded etcd there are none, and a delay would only make the interruption longer.
func (o *Options) completeShutdown() {
	if o.shutdownDelayGiven != nil && o.shutdownDelayGiven() {
		return
	}

	if len(o.Storage.StorageConfig.Transport.ServerList) > 0 {
		o.Server.ShutdownDelayDuration = replicaShutdownDelay
	}
}
