package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/plugin"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/startup"
	"omni.texashpc.com/omni-cluster-operator/pkg/hub"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry"
	"omni.texashpc.com/omni-cluster-operator/pkg/version"
)

// startTimeout is how long a start may take in total: until the embedded etcd is ready, and the hub and an external
// etcd have answered. It is less than the start-up probe of the chart allows, so that the process ends by itself and
// says why.
const startTimeout = 4 * time.Minute

// Config applies the options in the order of their dependencies. It waits until the context ends for the hub and for
// an external etcd, and fails if they do not answer or a right is missing.
//
// Storage comes last: it connects to etcd in the background, and its errors would follow the one that ended the
// start.
func (o *Options) Config(ctx context.Context) (*apiserver.Config, error) {
	config, err := apiserver.NewConfig()
	if err != nil {
		return nil, err
	}

	config.Registry = registry.Options{
		RequireDeletionConfirmation: o.RequireDeletionConfirmation,
		ManagementClusterName:       o.ManagementClusterName,
	}

	config.Limits, config.ListBytes = o.limits(), o.Limits.ListBytes
	if config.Limits.HalfOfEtcd {
		klog.InfoS("Half of --etcd-quota-backend-bytes limits what is stored, because --max-bytes is more", "bytes", config.Limits.Bytes)
	}

	if err := o.waitForEtcd(ctx); err != nil {
		return nil, err
	}

	if err := o.applyServing(config); err != nil {
		return nil, err
	}

	if err := o.applyHub(ctx, config); err != nil {
		return nil, err
	}

	storage := *o.Storage
	storage.StorageConfig.Codec = config.StorageCodec()

	if err := storage.ApplyTo(&config.Generic.Config); err != nil {
		return nil, fmt.Errorf("set up the storage (--etcd-*, --encryption-provider-config): %w", err)
	}

	return config, nil
}

// waitForEtcd waits for an external etcd.
func (o *Options) waitForEtcd(ctx context.Context) error {
	if o.EtcdDataDir != "" {
		return nil
	}

	etcd := o.Storage.StorageConfig.Transport

	return startup.WaitForEtcd(ctx, startup.EtcdTarget{
		Endpoints: etcd.ServerList, CAFile: etcd.TrustedCAFile, CertFile: etcd.CertFile, KeyFile: etcd.KeyFile,
	}, o.Storage.StorageConfig.Prefix)
}

// applyServing applies the options that need no other server.
func (o *Options) applyServing(config *apiserver.Config) error {
	generic := config.Generic
	pair := o.Serving.ServerCert.CertKey

	if err := o.Server.ApplyTo(&generic.Config); err != nil {
		return fmt.Errorf("apply the flags of the server: %w", err)
	}

	if err := o.Serving.ApplyToConfig(&generic.Config); err != nil {
		return fmt.Errorf("serve with the certificate %q and the key %q (--tls-cert-file, --tls-private-key-file, --secure-port): %w",
			pair.CertFile, pair.KeyFile, err)
	}

	if err := apiserver.ApplyAudit(o.Audit, &generic.Config); err != nil {
		return fmt.Errorf("set up the audit log (--audit-*): %w", err)
	}

	if err := o.Traces.ApplyTo(nil, &generic.Config); err != nil {
		return fmt.Errorf("set up tracing (--tracing-config-file): %w", err)
	}

	return nil
}

// applyHub applies the options that need the hub's kube-apiserver.
func (o *Options) applyHub(ctx context.Context, config *apiserver.Config) error {
	generic := config.Generic

	client, dynamicClient, err := o.connectToHub(ctx, config)
	if err != nil {
		return err
	}

	if err := o.applyAuth(generic); err != nil {
		return err
	}

	if err := o.Features.ApplyTo(&generic.Config, client, generic.SharedInformerFactory); err != nil {
		return fmt.Errorf("set up features: %w", err)
	}

	return o.applyAdmission(generic, client, dynamicClient)
}

// connectToHub waits for the hub and finds out which one it is.
func (o *Options) connectToHub(ctx context.Context, config *apiserver.Config) (kubernetes.Interface, dynamic.Interface, error) {
	generic := config.Generic

	if err := o.Hub.ApplyTo(generic); err != nil {
		return nil, nil, fmt.Errorf("connect to the hub (--kubeconfig): %w", err)
	}

	generic.ClientConfig.UserAgent = version.Get().UserAgent("omni-apiserver")

	client, err := kubernetes.NewForConfig(generic.ClientConfig)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the hub (--kubeconfig): %w", err)
	}

	dynamicClient, err := dynamic.NewForConfig(generic.ClientConfig)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the hub (--kubeconfig): %w", err)
	}

	if err := startup.WaitForHub(ctx, client, o.Admission); err != nil {
		return nil, nil, err
	}

	if config.Registry.HubID, err = hub.Identify(ctx, generic.ClientConfig, o.HubID, "omni-apiserver"); err != nil {
		return nil, nil, err
	}

	klog.InfoS("The hub in marks of ownership", "id", config.Registry.HubID)

	return client, dynamicClient, nil
}

// applyAuth sets up who may ask, and what they may do. Our own parts wrap what the library has set up, so they come after it:
// AuthorizeNamesLast wraps both the authenticator and the authorizer.
func (o *Options) applyAuth(generic *genericapiserver.RecommendedConfig) error {
	if err := o.Authentication.ApplyTo(&generic.Authentication, generic.SecureServing, generic.OpenAPIConfig); err != nil {
		return fmt.Errorf("set up authentication: %w", err)
	}

	apiserver.RememberFrontProxy(&generic.Authentication)
	apiserver.RefuseAnonymous(&generic.Authentication)

	if err := o.Authorization.ApplyTo(&generic.Authorization); err != nil {
		return fmt.Errorf("set up authorisation: %w", err)
	}

	apiserver.AuthorizeNamesLast(&generic.Config)

	return nil
}

func (o *Options) applyAdmission(generic *genericapiserver.RecommendedConfig, client kubernetes.Interface, dynamicClient dynamic.Interface) error {
	ownPlugins, err := apiserver.AdmissionInitializer(&generic.Config, plugin.Choices{
		ControllerNamespaces: o.ControllerNamespaces, CheckReferences: o.CheckReferences,
	})
	if err != nil {
		return err
	}

	informers := apiserver.WatchParametersApart(generic.SharedInformerFactory)

	if err := o.Admission.ApplyTo(&generic.Config, informers, client, dynamicClient,
		generic.FeatureGate, generic.EffectiveVersion, ownPlugins); err != nil {
		return fmt.Errorf("set up admission: %w", err)
	}

	return nil
}

// validateServing refuses to start without a certificate or a port: kube-apiserver would not trust a certificate that
// the library generates.
func (o *Options) validateServing() []error {
	var errs []error

	if o.Serving.BindPort == 0 {
		errs = append(errs, errors.New("--secure-port: 0 serves nobody; give a port"))
	}

	if pair := o.Serving.ServerCert.CertKey; pair.CertFile == "" || pair.KeyFile == "" {
		errs = append(errs, errors.New("--tls-cert-file and --tls-private-key-file: give both, with a certificate for the name of the Service; "+
			"cert-manager writes one"))
	}

	return errs
}

// validateTLS refuses settings that are too weak for connections from kube-apiserver. The library accepts TLS 1.0 and
// 1.1, and ciphers that it calls insecure itself.
func (o *Options) validateTLS() []error {
	var errs []error

	switch version, err := cliflag.TLSVersion(o.Serving.MinTLSVersion); {
	case err != nil:
		errs = append(errs, fmt.Errorf("--tls-min-version: %w; give VersionTLS12 or VersionTLS13", err))
	case version < tls.VersionTLS12:
		errs = append(errs, fmt.Errorf("--tls-min-version: %s is not safe; give VersionTLS12 or VersionTLS13", o.Serving.MinTLSVersion))
	}

	for _, cipher := range o.Serving.CipherSuites {
		switch {
		case slices.Contains(cliflag.InsecureTLSCipherNames(), cipher):
			errs = append(errs, fmt.Errorf("--tls-cipher-suites: %s is not safe; leave it out", cipher))
		case !slices.Contains(cliflag.PreferredTLSCipherNames(), cipher):
			errs = append(errs, fmt.Errorf("--tls-cipher-suites: %q is unknown; see omni-apiserver --help", cipher))
		}
	}

	return errs
}
