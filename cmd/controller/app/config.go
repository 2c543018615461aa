package app

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/version"
)

const (
	// leaseName is the name of the lease of the leader election.
	leaseName = "omni-controller"
	// cacheSyncTimeout bounds the first listing of each kind.
	cacheSyncTimeout = 5 * time.Minute
	// shutdownTimeout bounds the work that continues after the process was told to stop.
	shutdownTimeout = 30 * time.Second
	// requestsPerSecond and requestBurst bound the calls to the hub; the hub's own priority and fairness does the
	// rest.
	requestsPerSecond = 200
	requestBurst      = 400
)

// Config is the checked configuration of Run.
type Config struct {
	// Options are the flags.
	Options *Options
	// Hub is how to reach the management cluster.
	Hub *rest.Config
	// Manager are the options of the controller manager.
	Manager manager.Options
}

// Config makes the configuration. It reads files and the environment, and makes no calls.
func (o *Options) Config() (*Config, error) {
	hub, err := o.hub()
	if err != nil {
		return nil, err
	}

	hub.UserAgent = version.Get().UserAgent("omni-controller")
	hub.QPS, hub.Burst = requestsPerSecond, requestBurst

	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}

	metrics, err := o.Metrics.serving()
	if err != nil {
		return nil, err
	}

	shutdown := shutdownTimeout

	return &Config{Options: o, Hub: hub, Manager: manager.Options{
		Scheme:                        scheme,
		LeaderElection:                o.LeaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       o.leaseNamespace(),
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(leaseDuration),
		RenewDeadline:                 new(renewDeadline),
		RetryPeriod:                   new(leaseRetry),
		Metrics:                       metrics,
		HealthProbeBindAddress:        o.HealthProbeBindAddress,
		PprofBindAddress:              o.PprofBindAddress,
		GracefulShutdownTimeout:       &shutdown,
		Controller:                    config.Controller{CacheSyncTimeout: cacheSyncTimeout},
	}}, nil
}

// hub is how to reach the management cluster.
func (o *Options) hub() (*rest.Config, error) {
	if o.Kubeconfig == "" {
		hub, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("find the management cluster: outside of a cluster give --kubeconfig: %w", err)
		}

		return hub, nil
	}

	hub, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("find the management cluster: --kubeconfig: %w", err)
	}

	return hub, nil
}

// cacheOptions limit every watch to the one namespace that is served, and the watch of Secrets to that one and those
// to which exports may write. They also drop managed fields, which can be half of an object: nothing here reads them,
// and a write without them leaves those on the server unchanged. Of Secrets and ConfigMaps, which others write and no
// quota of ours bounds, they keep what the controllers read.
func (o *Options) cacheOptions() cache.Options {
	secrets, configMaps := cache.ByObject{Transform: index.KeepNeeded}, cache.ByObject{Transform: index.KeepNeeded}
	options := cache.Options{DefaultTransform: cache.TransformStripManagedFields(), NewInformer: newInformer}

	if !o.AllNamespaces {
		options.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}

		secrets.Namespaces = map[string]cache.Config{o.Namespace: {}}
		for _, namespace := range o.ExportNamespaces {
			secrets.Namespaces[namespace] = cache.Config{}
		}
	}

	options.ByObject = map[client.Object]cache.ByObject{&corev1.Secret{}: secrets, &corev1.ConfigMap{}: configMaps}

	return options
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()

	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}

	return scheme, nil
}
