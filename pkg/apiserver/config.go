package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/informers"
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

// WatchParametersApart wraps the informer factory of the admission plugins: it hides informers of kinds that the
// plugins look up generically, which are the kinds of admission policies' parameters.
//
// A server is ready when all informers of its factory have their lists. The library would add one informer for the
// parameters of every policy of the hub, whether or not the policy applies to our kinds, and never remove it. This
// server has no right to watch ConfigMaps and the like. So one policy with parameters would make the server not
// ready, and take the API from everybody, until the server is restarted without that policy. If the factory has no
// informer for a kind, the plugins watch that kind themselves, as long as a policy needs it.
func WatchParametersApart(factory informers.SharedInformerFactory) informers.SharedInformerFactory {
	return withoutParameters{factory}
}

type withoutParameters struct {
	informers.SharedInformerFactory
}

// ForResource fails for every kind: the plugins ask for the kinds that they know by other methods.
func (withoutParameters) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return nil, fmt.Errorf("parameters (%s) are watched apart", resource.GroupResource())
}

// compactJSON writes our kinds as JSON without white space only, which is valid YAML, too, and reads JSON and YAML.
//
// Not indented: of a deeply nested object that takes a hundred times its size, and the library encodes only compact JSON
// object by object. A whole list in another format takes up to seven times its length in memory.
//
// No protobuf: the library offers it for every type, and answers 500 if a type has no such encoding. The namespace
// controller and the garbage collector, which prefer protobuf, could then delete nothing. Without the offer they use JSON.
type compactJSON struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes returns JSON and YAML, both with the encoder of compact JSON.
func (s compactJSON) SupportedMediaTypes() []runtime.SerializerInfo {
	offered := slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes())

	json, ok := runtime.SerializerInfoForMediaType(offered, runtime.ContentTypeJSON)
	if !ok {
		return nil
	}

	offered = slices.DeleteFunc(offered, func(info runtime.SerializerInfo) bool {
		return info.MediaType == runtime.ContentTypeProtobuf
	})

	for i := range offered {
		offered[i].PrettySerializer = nil

		if offered[i].MediaType == runtime.ContentTypeYAML {
			offered[i].Serializer = struct {
				runtime.Decoder
				runtime.Encoder
			}{offered[i].Serializer, json.Serializer}
		}
	}

	return offered
}

// NewScheme makes a scheme with everything that the server encodes and decodes: all our kinds, Scale, and the types
// that every API server needs (options, Status, discovery).
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)

	if err := registry.AddFieldLabels(scheme); err != nil {
		return nil, fmt.Errorf("make scheme: %w", err)
	}

	// ListOptions and similar types are decoded in the version "v1" whatever the group.
	v1 := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, v1)
	scheme.AddUnversionedTypes(v1,
		&metav1.Status{},
		&metav1.APIVersions{},
		&metav1.APIGroupList{},
		&metav1.APIGroup{},
		&metav1.APIResourceList{},
	)

	return scheme, nil
}
