package app

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"

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
