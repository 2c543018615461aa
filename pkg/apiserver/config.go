package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/install"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/lists"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/requestbody"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/quota"
)

const serverName = "omni-apiserver"

// Config is everything the server is made from.
type Config struct {
	// Generic is the configuration of the generic API server.
	Generic *genericapiserver.RecommendedConfig
	// Registry is what can be chosen about the kinds.
	Registry registry.Options
	// Limits bound what may be stored.
	Limits quota.Limits
	// ListBytes bounds the lists that are read at the same time, in bytes of what is stored; 0 means no bound.
	ListBytes int64

	scheme *runtime.Scheme
	codecs serializer.CodecFactory

	// These are the constants of the same names, requestbody.Budget and lists.Timeout. Only tests have others.
	requestGracePeriod time.Duration
	bodiesBudget       int64
	listTimeout        time.Duration
}

// NewConfig starts a configuration with the scheme and without any option applied.
func NewConfig() (*Config, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}

	codecs := serializer.NewCodecFactory(scheme)

	return &Config{
		Generic: genericapiserver.NewRecommendedConfig(codecs),
		scheme:  scheme,
		codecs:  codecs,

		requestGracePeriod: requestGracePeriod,
		bodiesBudget:       requestbody.Budget,
		listTimeout:        lists.Timeout,
	}, nil
}

// StorageCodec encodes objects the way they are stored.
func (c *Config) StorageCodec() runtime.Codec {
	return install.StorageCodec(c.scheme)
}

// Complete fills in what follows from the rest. Call it once, after all options were applied.
func (c *Config) Complete() CompletedConfig {
	c.Generic.MaxRequestBodyBytes = requestbody.MaxBytes
	ledger := quota.NewLedger(c.Limits, c.StorageCodec())

	// Outside of the library's chain: the last of these sees a request first.
	boundAnswers(&c.Generic.Config)
	boundDirectConnections(&c.Generic.Config)
	requireRequestHeaderCA(&c.Generic.Config)
	sendClientsAway(&c.Generic.Config)
	endOpenRequests(&c.Generic.Config, c.requestGracePeriod)

	// Inside of it: the first of these sees a request first.
	requestbody.Bound(&c.Generic.Config, c.bodiesBudget)
	lists.Bound(&c.Generic.Config, ledger, c.ListBytes, c.listTimeout)

	tellReadiness(klog.Background(), &c.Generic.Config)
	addOpenAPI(&c.Generic.Config, c.scheme, v1alpha1.SchemeGroupVersion.Version)

	return CompletedConfig{config: c, generic: c.Generic.Complete(), ledger: ledger}
}

// CompletedConfig can only be made by Config.Complete.
type CompletedConfig struct {
	config  *Config
	generic genericapiserver.CompletedConfig
	ledger  *quota.Ledger // counts what is stored
}

// New makes the server with all kinds installed. It does not serve before Run. If it fails, nothing uses the storage.
func (c CompletedConfig) New() (*Server, error) {
	generic, err := c.generic.New(serverName, genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("make generic API server: %w", err)
	}

	generic.ShutdownTimeout = c.config.requestGracePeriod + closeTime

	if err := c.install(generic); err != nil {
		generic.Destroy()

		return nil, err
	}

	return &Server{Generic: generic, Ledger: c.ledger, requestGracePeriod: c.config.requestGracePeriod}, nil
}

// install makes the kinds and what follows from them. From then on they end with the server.
func (c CompletedConfig) install(generic *genericapiserver.GenericAPIServer) error {
	served, err := registry.NewStorage(c.config.scheme, c.generic.RESTOptionsGetter, c.config.Registry, c.ledger)
	if err != nil {
		return fmt.Errorf("make storage: %w", err)
	}

	group := genericapiserver.NewDefaultAPIGroupInfo(v1alpha1.GroupName, c.config.scheme,
		runtime.NewParameterCodec(c.config.scheme), c.config.codecs)
	group.NegotiatedSerializer = compactJSON{group.NegotiatedSerializer}
	group.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = served

	if err := generic.InstallAPIGroup(&group); err != nil {
		registry.Destroy(served)

		return fmt.Errorf("install %s: %w", v1alpha1.GroupName, err)
	}

	following, stop := context.WithCancel(context.Background())
	generic.RegisterDestroyFunc(stop)
	c.ledger.Follow(following, registry.Sources(served))

	if err := generic.AddReadyzChecks(
		newToldCheck(klog.Background(), healthz.NamedCheck("watch-caches", watchCaches(served)), time.Now()),
	); err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}

	return nil
}

// watchCaches returns a check that fails until every kind's cache has been filled once. While a cache fills, lists of
// its kind are answered with "try again later". Afterwards the check passes for ever, as the library's own does: if
// one kind's cache has to be filled again, that is no reason to take all kinds away, and on every replica at once.
func watchCaches(served map[string]rest.Storage) func(*http.Request) error {
	var filled atomic.Bool

	return func(*http.Request) error {
		if filled.Load() {
			return nil
		}

		for path, storage := range served {
			kind, ok := storage.(interface{ ReadinessCheck() error })
			if !ok {
				continue
			}

			if err := kind.ReadinessCheck(); err != nil {
				return fmt.Errorf("the watch cache of %s is not ready: %w", path, err)
			}
		}

		filled.Store(true)

		return nil
	}
}
