package app

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	cliflag "k8s.io/component-base/cli/flag"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/requestbody"
	"omni.texashpc.com/omni-cluster-operator/pkg/hub"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/quota"
)

// etcdPrefix is the prefix of the objects' keys; the group follows it. It differs from the /registry of a
// kube-apiserver, because --etcd-servers may name the etcd of one.
const etcdPrefix = "/omni-apiserver"

// watchDrainTime is how long a stop gives watches to end. Without it the library does not end watches at all, and
// waits a minute for their connections.
const watchDrainTime = 10 * time.Second

// streamsPerConnection is how many requests and watches one connection may carry at the same time. The aggregator
// sends its requests over one connection while that has room, and opens more when it has none. A higher number helps
// only an attacker who bypasses the aggregator and abandons requests as fast as a connection accepts them. With the
// 1000 that servers behind an aggregator usually allow, four connections of a user without rights took up to 1.6 GiB
// of memory within ten seconds, more than the chart allows; with 250 it was up to 390 MiB, with 100 up to 170 MiB, of
// which 125 MiB were in use before.
const streamsPerConnection = 100

// Options are the flags of omni-apiserver. The zero value is not usable; call NewOptions.
type Options struct {
	// Server, Storage, Serving and so on are option groups of the generic API server.
	Server         *genericoptions.ServerRunOptions
	Storage        *genericoptions.EtcdOptions
	Serving        *genericoptions.SecureServingOptionsWithLoopback
	Authentication *genericoptions.DelegatingAuthenticationOptions
	Authorization  *genericoptions.DelegatingAuthorizationOptions
	Audit          *genericoptions.AuditOptions
	Features       *genericoptions.FeatureOptions
	Hub            *genericoptions.CoreAPIOptions
	Admission      *genericoptions.AdmissionOptions
	Traces         *genericoptions.TracingOptions

	// EtcdDataDir is the data directory of the embedded etcd; empty if an external one is used.
	EtcdDataDir string
	// Embedded are the options of that etcd.
	Embedded EmbeddedEtcdOptions
	// Limits limit how much may be stored and listed.
	Limits LimitOptions
	// ControllerNamespaces are the namespaces that a controller serves; empty means any.
	ControllerNamespaces []string
	// CheckReferences refuses references to Secrets and ConfigMaps that the writer may not get.
	CheckReferences bool
	// RequireDeletionConfirmation is the default of spec.deletePolicy.requireConfirmation.
	RequireDeletionConfirmation bool
	// shutdownDelayGiven says whether the command line has --shutdown-delay-duration.
	shutdownDelayGiven func() bool
	// ManagementClusterName is the name of this management cluster in the ownership mark of a rendered template.
	ManagementClusterName string
	// HubID is the ID of the hub in that mark. Empty: the UID of its Namespace kube-system.
	HubID string
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	serving := genericoptions.NewSecureServingOptions()
	serving.HTTP2MaxStreamsPerConnection = streamsPerConnection
	serving.ServerCert.CertDirectory = ""
	serving.ServerCert.PairName = "omni-apiserver"

	o := &Options{
		Server:         genericoptions.NewServerRunOptions(),
		Storage:        genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(etcdPrefix, nil)),
		Serving:        serving.WithLoopback(),
		Authentication: genericoptions.NewDelegatingAuthenticationOptions(),
		Authorization:  genericoptions.NewDelegatingAuthorizationOptions(),
		Audit:          genericoptions.NewAuditOptions(),
		Features:       genericoptions.NewFeatureOptions(),
		Hub:            genericoptions.NewCoreAPIOptions(),
		Admission:      apiserver.NewAdmissionOptions(),
		Traces:         genericoptions.NewTracingOptions(),
		Embedded:       newEmbeddedEtcdOptions(),
		Limits:         newLimitOptions(),
	}
	o.Server.MaxRequestBodyBytes = requestbody.MaxBytes
	o.Server.ShutdownWatchTerminationGracePeriod = watchDrainTime

	return o
}

// Complete derives options that were left out: without kubeconfigs of their own, authentication and authorisation use
// the same kube-apiserver as everything else.
func (o *Options) Complete() error {
	o.Authentication.RemoteKubeConfigFile = cmp.Or(o.Authentication.RemoteKubeConfigFile, o.Hub.CoreAPIKubeconfigPath)
	o.Authorization.RemoteKubeConfigFile = cmp.Or(o.Authorization.RemoteKubeConfigFile, o.Hub.CoreAPIKubeconfigPath)

	o.completeShutdown()

	// Feature gates have their final values from here on.
	if err := o.Server.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("apply feature gates and versions: %w", err)
	}

	if err := o.Server.Complete(); err != nil {
		return fmt.Errorf("complete the options: %w", err)
	}

	return nil
}

// Validate returns all problems of the flags as one error.
func (o *Options) Validate() error {
	errs := append(o.validateStorage(), o.validateNamespaces()...)
	errs = append(errs, o.validateHubID()...)
	errs = append(errs, o.Limits.validate()...)
	errs = append(errs, o.Server.Validate()...)
	errs = append(errs, o.Serving.Validate()...)
	errs = append(errs, o.validateServing()...)
	errs = append(errs, o.validateTLS()...)
	errs = append(errs, o.Authentication.Validate()...)
	errs = append(errs, o.Authorization.Validate()...)
	errs = append(errs, o.Audit.Validate()...)
	errs = append(errs, o.Features.Validate()...)
	errs = append(errs, o.Hub.Validate()...)
	errs = append(errs, o.Admission.Validate()...)
	errs = append(errs, o.Traces.Validate()...)

	return errors.Join(errs...)
}

func (o *Options) validateStorage() []error {
	external := len(o.Storage.StorageConfig.Transport.ServerList) > 0

	switch {
	case o.EtcdDataDir == "" && !external:
		return []error{errors.New("objects need a place: give --etcd-data-dir to store them in an etcd inside " +
			"this process, or --etcd-servers to use an etcd of your own")}
	case o.EtcdDataDir != "" && external:
		return []error{errors.New("--etcd-data-dir and --etcd-servers exclude each other: " +
			"objects are either in this process's own etcd or in yours")}
	case external:
		return append(o.Storage.Validate(), o.Embedded.validateUnused()...)
	case !o.Storage.EnableWatchCache || len(o.Storage.WatchCacheSizes) > 0:
		return []error{errors.New("--watch-cache=false and --watch-cache-sizes are for --etcd-servers: " +
			"with --etcd-data-dir every kind has a watch cache")}
	}

	// The library requires an etcd server; the address of the embedded one is known only when it runs.
	embedded := *o.Storage
	embedded.StorageConfig.Transport.ServerList = []string{"unix:embedded"}

	return append(embedded.Validate(), o.Embedded.validate()...)
}

// limits returns the limits of stored objects.
func (o *Options) limits() quota.Limits {
	if o.EtcdDataDir == "" {
		return o.Limits.stored(0)
	}

	return o.Limits.stored(o.Embedded.QuotaBytes)
}

func (o *Options) validateHubID() []error {
	if o.HubID == "" {
		return nil
	}

	if err := hub.ValidateID(o.HubID); err != nil {
		return []error{fmt.Errorf("--%s: %w", hub.FlagID, err)}
	}

	return nil
}

func (o *Options) validateNamespaces() []error {
	var errs []error

	for _, namespace := range o.ControllerNamespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("--controller-namespaces: %q is not a namespace name: %s", namespace, problems[0]))
		}
	}

	return errs
}

// Flags returns the flags in sections: our own first, then those of the generic API server.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var sections cliflag.NamedFlagSets

	omni := sections.FlagSet("omni")
	omni.StringVar(&o.EtcdDataDir, "etcd-data-dir", o.EtcdDataDir,
		"Directory of the etcd that runs inside this process and holds all objects. Made if it does not exist; "+
			"only one process can use it. Excludes --etcd-servers.")
	o.Embedded.addFlags(omni)
	o.Limits.addFlags(omni)
	omni.StringSliceVar(&o.ControllerNamespaces, "controller-namespaces", o.ControllerNamespaces,
		"Namespaces that an omni-controller serves, comma separated. Who creates, changes or deletes an object anywhere else "+
			"gets a warning that nobody will look at it. Empty: no warning.")
	omni.BoolVar(&o.CheckReferences, "check-references", o.CheckReferences,
		"Refuse an object, or a change of it, that begins to use a Secret or ConfigMap which the writer may not get in "+
			"the management cluster. Accounts of GitOps controllers need that right then.")
	omni.BoolVar(&o.RequireDeletionConfirmation, "require-deletion-confirmation", o.RequireDeletionConfirmation,
		"Refuse to delete an OmniCluster before it is annotated with omni.texashpc.com/confirm-deletion=<its name>, "+
			"unless its spec.deletePolicy.requireConfirmation says otherwise.")
	omni.StringVar(&o.ManagementClusterName, "management-cluster-name", o.ManagementClusterName,
		"Name of this management cluster in the ownership mark of rendered templates. Give the controller the same.")
	omni.StringVar(&o.HubID, hub.FlagID, o.HubID, hub.FlagIDUsage)

	o.Hub.AddFlags(sections.FlagSet("hub"))
	o.Serving.AddFlags(sections.FlagSet("secure serving"))
	o.Authentication.AddFlags(sections.FlagSet("authentication"))
	o.Authorization.AddFlags(sections.FlagSet("authorization"))
	o.Storage.AddFlags(sections.FlagSet("storage"))
	o.Admission.AddFlags(sections.FlagSet("admission"))
	o.Audit.AddFlags(sections.FlagSet("audit"))
	o.Features.AddFlags(sections.FlagSet("features"))
	o.Traces.AddFlags(sections.FlagSet("traces"))
	o.addServerFlags(sections.FlagSet("generic"))

	return sections
}

// LimitOptions are the flags that limit how much may be stored, and how much may be listed at the same time. 0 means
// no limit.
type LimitOptions struct {
	// Stored limits objects and their bytes, per namespace and in total.
	Stored quota.Limits
	// ListBytes bounds the lists that are read at the same time, in bytes of what is stored.
	ListBytes int64
}

// newLimitOptions returns the defaults. They fit into the 1 GiB of memory that the chart gives: all stored objects
// are held decoded in memory, and a table of all of them takes four times as much while it is made.
func newLimitOptions() LimitOptions {
	return LimitOptions{
		Stored: quota.Limits{
			NamespaceObjects: 20_000, NamespaceBytes: 64 << 20,
			Objects: 40_000, Bytes: 96 << 20,
		},
		ListBytes: 96 << 20,
	}
}

func (o *LimitOptions) addFlags(flags *pflag.FlagSet) {
	flags.Int64Var(&o.Stored.NamespaceObjects, "max-objects-per-namespace", o.Stored.NamespaceObjects,
		"Most objects, of all kinds together, that a namespace can have. Further ones are refused with 403. 0: no limit.")
	flags.Int64Var(&o.Stored.NamespaceBytes, "max-bytes-per-namespace", o.Stored.NamespaceBytes,
		"Most bytes of JSON that the objects of a namespace can have. At the limit, new objects and changes that let one grow are "+
			"refused with 403; status, deletions and changes that make one smaller are not. 0: no limit.")
	flags.Int64Var(&o.Stored.Objects, "max-objects", o.Stored.Objects, "The same as --max-objects-per-namespace, for all namespaces together.")
	flags.Int64Var(&o.Stored.Bytes, "max-bytes", o.Stored.Bytes,
		"The same as --max-bytes-per-namespace, for all namespaces together. The memory has to fit: docs/concepts/limits.md says how much. "+
			"With --etcd-data-dir at most half of --etcd-quota-backend-bytes counts.")
	flags.Int64Var(&o.ListBytes, "max-list-bytes-in-flight", o.ListBytes,
		"Most bytes of stored objects that are listed at the same time. Further lists wait for 10 seconds and are then answered with 429. "+
			"One user has at most half of it; larger lists run one at a time. A table counts four times. 0: no limit.")
}

func (o *LimitOptions) validate() []error {
	var errs []error

	for _, limit := range append(o.Stored.Each(), quota.Limit{Flag: "--max-list-bytes-in-flight", Value: o.ListBytes}) {
		if limit.Value < 0 {
			errs = append(errs, fmt.Errorf("%s: %d is below 0; use 0 for no limit", limit.Flag, limit.Value))
		}
	}

	return errs
}

// stored returns the limits of stored objects, given the quota of the embedded etcd; 0 stands for an external etcd,
// whose quota is not known. The database also holds old versions and free space until they are cleaned up, so current
// objects may take at most half of the quota.
func (o *LimitOptions) stored(etcdQuota int64) quota.Limits {
	limits := o.Stored

	if half := etcdQuota / 2; half > 0 && (limits.Bytes == 0 || limits.Bytes > half) {
		limits.Bytes, limits.HalfOfEtcd = half, true
	}

	return limits
}
