package app

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/hub"
)

// Defaults of the flags.
const (
	defaultSettleTime    = 10 * time.Second
	defaultJoinTime      = 2 * time.Second
	defaultStartTimeout  = 10 * time.Minute
	defaultMetricsAddr   = ":8080"
	defaultHealthAddr    = ":8081"
	minimumSettleTime    = time.Second
	defaultReadyTime     = time.Minute
	maxVerbosity         = 4
	defaultConnections   = 16
	defaultClusters      = 32 // one connection may keep a quarter of them
	defaultChildren      = 2
	defaultExports       = 4
	defaultWorkload      = 8
	defaultPolicies      = 2
	namespaceEnvironment = "POD_NAMESPACE"
)

// Flags with several uses: also in messages, or of two commands.
const (
	flagExportNamespaces = "export-namespaces"
	flagRoleBinding      = "role-binding"
	flagAllowedNetworks  = "allowed-networks"
	flagDeniedNetworks   = "denied-networks"
)

// Options are the flags of omni-controller.
type Options struct {
	// Kubeconfig is the path of a kubeconfig; empty: the service account of the pod.
	Kubeconfig string
	// Namespace is the one namespace to serve.
	Namespace string
	// AllNamespaces serves every namespace instead.
	AllNamespaces bool
	// RoleBinding is the one that gives the controller its rights in Namespace. A copy of it outlives the deletion of the
	// namespace until the controller has cleaned up. Empty: there is no copy. With AllNamespaces it is the one that former
	// controllers of one namespace had, whose copies are removed.
	RoleBinding string
	// LeaderElect lets only one of several controllers work at a time.
	LeaderElect bool
	// ExportNamespaces are those besides its own to which an OmniKubeconfigExport may write its Secret.
	ExportNamespaces []string
	// LeaderElectionNamespace holds the lease. Empty: Namespace.
	LeaderElectionNamespace string
	// Metrics says where and to whom metrics are served.
	Metrics MetricsOptions
	// HealthProbeBindAddress serves /healthz and /readyz; "0" turns it off.
	HealthProbeBindAddress string
	// PprofBindAddress serves Go's profiles under /debug/pprof; empty turns them off. Profiles contain parts of the
	// process's memory, so the address should be a loopback one.
	PprofBindAddress string
	// Verbosity is how much to log, 0 to 4.
	Verbosity int
	// DestroySettleTime is how long destructive changes must stay the same before they are applied.
	DestroySettleTime time.Duration
	// JoinSettleTime is how long the documents of a cluster must be unchanged before a machine joins it.
	JoinSettleTime time.Duration
	// ManagementClusterName is written into the ownership mark, for people.
	ManagementClusterName string
	// HubID is the ID of the hub in ownership marks. Empty: the UID of its Namespace kube-system.
	HubID string
	// StartTimeout bounds how long the start waits for the API.
	StartTimeout time.Duration
	// AllowedEndpoints are endpoints of Omni that every key may be used with.
	AllowedEndpoints []string
	// RequireAllowedEndpoint refuses keys whose Secrets name no endpoints.
	RequireAllowedEndpoint bool
	// ProtectedSecrets are Secrets, as namespace/name, that users may not have the controllers use.
	ProtectedSecrets []string
	// AllowInsecureOmni allows OmniConnections without TLS, or with a certificate that is not verified.
	AllowInsecureOmni bool
	// AllowedNetworks and DeniedNetworks are networks in CIDR notation. Endpoints of Omni, workload clusters, their
	// proxies and chart repositories must not have addresses in DeniedNetworks, nor loopback, link-local, multicast,
	// unspecified, broadcast or cloud metadata addresses. Addresses in AllowedNetworks are exceptions from both
	// rules.
	AllowedNetworks, DeniedNetworks []string
	// Rollouts makes changes of clusters wait for their turn in OmniRolloutPolicies.
	Rollouts bool
	// RolloutReadyTime is how long a cluster must be Ready before its turn in a rollout counts as done.
	RolloutReadyTime time.Duration
	// RenderWorkers is how many Helm charts are rendered at the same time, each in a separate process.
	RenderWorkers int
	// RenderMemoryMiB is how much memory the rendering of a chart may take, in MiB.
	RenderMemoryMiB int64
	// RenderTimeout bounds the rendering of one chart.
	RenderTimeout time.Duration
	// Limits are the limits of each connection's calls to its Omni.
	Limits controllers.Limits
	// Concurrency is how many objects of each kind are reconciled at the same time.
	Concurrency controllers.Concurrency
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Namespace:              os.Getenv(namespaceEnvironment),
		LeaderElect:            true,
		Metrics:                MetricsOptions{BindAddress: defaultMetricsAddr, Secure: true},
		HealthProbeBindAddress: defaultHealthAddr,
		DestroySettleTime:      defaultSettleTime,
		JoinSettleTime:         defaultJoinTime,
		StartTimeout:           defaultStartTimeout,
		Rollouts:               true,
		RolloutReadyTime:       defaultReadyTime,
		RenderWorkers:          controllers.DefaultRenderWorkers,
		RenderMemoryMiB:        controllers.DefaultRenderMemory / mebibyte,
		RenderTimeout:          controllers.DefaultRenderTimeout,
		Limits: controllers.Limits{
			QPS: controllers.DefaultQPS, Burst: controllers.DefaultBurst, Resources: controllers.DefaultResources,
			Memory: controllers.DefaultMemory, TotalMemory: controllers.DefaultTotalMemory,
		},
		Concurrency: controllers.Concurrency{
			OmniConnection: defaultConnections, OmniCluster: defaultClusters,
			OmniControlPlane: defaultChildren, OmniWorkers: defaultChildren, OmniMachine: defaultChildren,
			OmniKubeconfigExport: defaultExports,
			OmniSecretSync:       defaultWorkload, OmniHelmRelease: defaultWorkload, OmniRolloutPolicy: defaultPolicies,
		},
	}
}

// AddFlags adds the flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Kubeconfig of the management cluster. Inside a cluster, the pod's service account is used without it.")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "The namespace to serve. Default: "+namespaceEnvironment+" of the environment.")
	flags.BoolVar(&o.AllNamespaces, "all-namespaces", o.AllNamespaces, "Serve every namespace. Needs the role omni-controller in all of them.")
	flags.StringVar(&o.RoleBinding, flagRoleBinding, o.RoleBinding, "RoleBinding in --namespace that gives the controller all its rights there. While there is anything to clean up in the namespace, the controller keeps a copy, NAME-deletion, and its lease, with a finalizer: if the namespace is deleted, it can still clean up. Without it the rights go at once. With --all-namespaces it is the one that controllers of one namespace had before: what they have left is released. Default: none; what such a controller with omni-controller has left is released.")
	flags.StringSliceVar(&o.ExportNamespaces, flagExportNamespaces, o.ExportNamespaces, "Namespaces (separated by commas) besides its own to which an OmniKubeconfigExport may write its Secret. Needs a role for Secrets in each, such as the one that the chart makes (controller.exportNamespaces). Default: none.")
	flags.BoolVar(&o.Rollouts, "rollouts", o.Rollouts, "Have changes of clusters wait for their turn in the OmniRolloutPolicies. Without it these policies have no effect.")
	flags.DurationVar(&o.RolloutReadyTime, "rollout-ready-time", o.RolloutReadyTime, "How long a cluster must be Ready with its changes before its turn in an OmniRolloutPolicy is over. At least 1s.")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "Let only one of several controllers work.")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", o.LeaderElectionNamespace, "Namespace of the lease. Default: --namespace.")
	o.Metrics.addFlags(flags)
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress, "Where to serve /healthz and /readyz; 0 turns them off.")
	flags.StringVar(&o.PprofBindAddress, "pprof-bind-address", o.PprofBindAddress, "Where to serve profiles (/debug/pprof), such as 127.0.0.1:6060. Anyone who reaches it can read them. Default: off.")
	flags.DurationVar(&o.DestroySettleTime, "destroy-settle-time", o.DestroySettleTime, "How long the changes that destroy must be unchanged before they are applied. At least 1s.")
	flags.DurationVar(&o.JoinSettleTime, "join-settle-time", o.JoinSettleTime, fmt.Sprintf("How long the documents of a cluster must be unchanged before a machine joins it, so that it has its settings first. %s at most, which is also how long documents that go on changing keep it waiting; 0 turns it off.", controllers.MaxJoinSettleTime))
	flags.StringVar(&o.ManagementClusterName, "management-cluster-name", o.ManagementClusterName, "Name of this management cluster, written on the clusters in Omni for people.")
	flags.StringVar(&o.HubID, hub.FlagID, o.HubID, hub.FlagIDUsage)
	flags.IntVarP(&o.Verbosity, "v", "v", o.Verbosity, "How much to log, 0 to 4. At 1 the outcome of every phase of every reconcile, at 2 every plan in full.")
	flags.DurationVar(&o.StartTimeout, "start-timeout", o.StartTimeout, "How long to wait at the start for the API, and for the rights to its kinds.")
	flags.Float64Var(&o.Limits.QPS, "omni-qps", o.Limits.QPS, "How many calls per second each OmniConnection may send to its Omni.")
	flags.IntVar(&o.Limits.Burst, "omni-burst", o.Limits.Burst, "How many calls each OmniConnection may send at once, above --omni-qps.")

	flags.IntVar(&o.Limits.Resources, "omni-max-resources", o.Limits.Resources, "How many resources of one Omni are kept. Beyond it the OmniConnection is closed, and shows TooMuchData.")
	flags.Int64Var(&o.Limits.Memory, "omni-max-memory", o.Limits.Memory, "How many bytes of memory the copy of one Omni may take. Beyond it the OmniConnection is closed, and shows TooMuchData.")
	flags.Int64Var(&o.Limits.TotalMemory, "omni-max-total-memory", o.Limits.TotalMemory, "How many bytes of memory the copies of all Omnis may take together. Beyond it the largest OmniConnection of the namespace that takes the most is closed. At least twice --omni-max-memory, so that one namespace cannot crowd out another.")
	flags.StringSliceVar(&o.AllowedEndpoints, "omni-allowed-endpoints", o.AllowedEndpoints, "Endpoints of Omni, such as https://omni.example.com (separated by commas), that the keys of all OmniConnections may be used with, whatever their Secrets say. Scheme, host and port are compared. Default: none.")
	flags.BoolVar(&o.RequireAllowedEndpoint, "require-allowed-endpoint", o.RequireAllowedEndpoint, "Use no key whose Secret lacks the annotation omni.texashpc.com/allowed-endpoints, unless the endpoint is one of --omni-allowed-endpoints. Default: such a key is used, with a warning.")
	flags.StringSliceVar(&o.ProtectedSecrets, "protected-secrets", o.ProtectedSecrets, "Secrets (namespace/name, separated by commas) that no object may use or copy, whatever it names: those of the operator's own installation. Those with the label omni.texashpc.com/protected=true are treated alike, and ServiceAccount tokens, bootstrap tokens and Helm's records always.")
	flags.BoolVar(&o.AllowInsecureOmni, "allow-insecure-omni", o.AllowInsecureOmni, "Allow OmniConnections without TLS (http, grpc) or with insecureSkipTLSVerify. Whoever is on the way can then use their keys.")
	flags.StringSliceVar(&o.AllowedNetworks, flagAllowedNetworks, o.AllowedNetworks, "Networks (CIDR, separated by commas) in which Omni, workload clusters, their proxies and chart repositories may be although --denied-networks names them or they are loopback, link-local, multicast, unspecified, broadcast or cloud metadata addresses. Default: none.")
	flags.StringSliceVar(&o.DeniedNetworks, flagDeniedNetworks, o.DeniedNetworks, "Networks (CIDR, separated by commas) to which the controller does not connect for users, besides loopback, link-local, multicast, unspecified, broadcast and cloud metadata addresses. Default: none.")

	flags.IntVar(&o.RenderWorkers, "render-workers", o.RenderWorkers, "How many Helm charts are rendered at the same time, each in a process of its own. With several, one namespace uses all but one of them.")
	flags.Int64Var(&o.RenderMemoryMiB, "render-memory", o.RenderMemoryMiB, "How much memory a Helm chart may take to render, in MiB. The container's limit has to leave room for --render-workers times as much.")
	flags.DurationVar(&o.RenderTimeout, "render-timeout", o.RenderTimeout, "How long the rendering of one Helm chart may take.")

	for _, kind := range o.concurrencies() {
		flags.IntVar(kind.workers, kind.name+"-concurrency", *kind.workers, "How many objects of this kind are looked at at once.")
	}
}

// kindWorkers is the concurrency of one kind.
type kindWorkers struct {
	name    string
	workers *int
}

// concurrencies lists the concurrency of every kind.
func (o *Options) concurrencies() []kindWorkers {
	c := &o.Concurrency

	return []kindWorkers{
		{"omniconnection", &c.OmniConnection}, {"omnicluster", &c.OmniCluster}, {"omnicontrolplane", &c.OmniControlPlane},
		{"omniworkers", &c.OmniWorkers}, {"omnimachine", &c.OmniMachine},
		{"omnikubeconfigexport", &c.OmniKubeconfigExport},
		{"omnisecretsync", &c.OmniSecretSync}, {"omnihelmrelease", &c.OmniHelmRelease},
		{"omnirolloutpolicy", &c.OmniRolloutPolicy},
	}
}

// Validate returns all problems of the flags at once.
func (o *Options) Validate() error {
	problems := slices.Concat(o.validateScope(), o.validateTimes(), o.validateCopies(), o.validateRendering(), o.validateLimits())

	if o.Verbosity < 0 || o.Verbosity > maxVerbosity {
		problems = append(problems, fmt.Errorf("--v must be 0 to %d: beyond that the client libraries log contents, which may be secret", maxVerbosity))
	}

	if o.HubID != "" {
		if err := hub.ValidateID(o.HubID); err != nil {
			problems = append(problems, fmt.Errorf("--%s: %w", hub.FlagID, err))
		}
	}

	_, endpoints := o.endpointPolicy()
	_, guard := o.guard()
	_, sources := o.sources()

	return errors.Join(append(problems, o.Metrics.validate(), endpoints, guard, sources)...)
}

// validateScope looks at the namespaces that are served, exported to and used for the lease.
func (o *Options) validateScope() (problems []error) {
	if o.Namespace == "" && !o.AllNamespaces {
		problems = append(problems, fmt.Errorf("--namespace (or %s) or --all-namespaces is required", namespaceEnvironment))
	}

	for _, namespace := range o.ExportNamespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			problems = append(problems, fmt.Errorf("--%s: %q is not the name of a namespace", flagExportNamespaces, namespace))
		}
	}

	if o.LeaderElect && o.leaseNamespace() == "" {
		problems = append(problems, errors.New("--leader-election-namespace is required with --leader-elect when there is no --namespace"))
	}

	return problems
}

func (o *Options) validateTimes() (problems []error) {
	if o.RolloutReadyTime < minimumSettleTime {
		problems = append(problems, fmt.Errorf("--rollout-ready-time: %s is less than %s", o.RolloutReadyTime, minimumSettleTime))
	}

	if o.DestroySettleTime < minimumSettleTime {
		problems = append(problems, fmt.Errorf("--destroy-settle-time: %s is less than %s", o.DestroySettleTime, minimumSettleTime))
	}

	if o.JoinSettleTime < 0 || o.JoinSettleTime > controllers.MaxJoinSettleTime {
		problems = append(problems, fmt.Errorf("--join-settle-time: %s is not between 0s and %s", o.JoinSettleTime, controllers.MaxJoinSettleTime))
	}

	if o.StartTimeout <= 0 {
		problems = append(problems, errors.New("--start-timeout must be positive"))
	}

	return problems
}

func (o *Options) validateLimits() (problems []error) {
	if o.Limits.QPS <= 0 {
		problems = append(problems, errors.New("--omni-qps must be positive"))
	}

	if o.Limits.Burst < 1 {
		problems = append(problems, fmt.Errorf("--omni-burst: %d is less than 1", o.Limits.Burst))
	}

	for _, kind := range o.concurrencies() {
		if *kind.workers < 1 {
			problems = append(problems, fmt.Errorf("--%s-concurrency: %d is less than 1", kind.name, *kind.workers))
		}
	}

	return problems
}

// minimumCopy is the smallest limit for the copy of an Omni's state, in bytes: the watches alone reserve some memory.
const minimumCopy = 8 << 20

// validateCopies checks the limits of the copies of Omnis' state.
func (o *Options) validateCopies() []error {
	var problems []error

	if o.Limits.Resources < 1 {
		problems = append(problems, fmt.Errorf("--omni-max-resources: %d is less than 1", o.Limits.Resources))
	}

	if o.Limits.Memory < minimumCopy {
		problems = append(problems, fmt.Errorf("--omni-max-memory: %d is less than %d", o.Limits.Memory, minimumCopy))
	}

	if o.Limits.TotalMemory < o.Limits.Memory {
		problems = append(problems, fmt.Errorf("--omni-max-total-memory: %d is less than --omni-max-memory, %d", o.Limits.TotalMemory, o.Limits.Memory))
	}

	return problems
}

// endpointPolicy parses AllowedEndpoints.
func (o *Options) endpointPolicy() (controllers.EndpointPolicy, error) {
	allowed, err := controllers.ParseEndpoints(strings.Join(o.AllowedEndpoints, ","))
	if err != nil {
		return controllers.EndpointPolicy{}, fmt.Errorf("--omni-allowed-endpoints: %w", err)
	}

	return controllers.EndpointPolicy{Allowed: allowed, Required: o.RequireAllowedEndpoint, AllowInsecure: o.AllowInsecureOmni}, nil
}

// guard parses AllowedNetworks and DeniedNetworks.
func (o *Options) guard() (dialguard.Guard, error) {
	allowed, err := dialguard.ParseNetworks(o.AllowedNetworks)
	if err != nil {
		return dialguard.Guard{}, fmt.Errorf("--%s: %w", flagAllowedNetworks, err)
	}

	denied, err := dialguard.ParseNetworks(o.DeniedNetworks)
	if err != nil {
		return dialguard.Guard{}, fmt.Errorf("--%s: %w", flagDeniedNetworks, err)
	}

	return dialguard.Guard{Allowed: allowed, Denied: denied}, nil
}

// sources parses ProtectedSecrets.
func (o *Options) sources() (controllers.SourcePolicy, error) {
	var policy controllers.SourcePolicy

	for _, protected := range o.ProtectedSecrets {
		namespace, name, found := strings.Cut(strings.TrimSpace(protected), "/")
		if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
			return policy, fmt.Errorf("--protected-secrets: %q is not of the form namespace/name", protected)
		}

		policy.Protected = append(policy.Protected, types.NamespacedName{Namespace: namespace, Name: name})
	}

	return policy, nil
}

// leaseNamespace is where the lease is.
func (o *Options) leaseNamespace() string {
	if o.LeaderElectionNamespace != "" {
		return o.LeaderElectionNamespace
	}

	return o.Namespace
}

// mappings is a mapper that keeps what it found: every list from a cache that is limited to namespaces asks for the
// kind's scope, and the mapper of the client library searches anew each time. The resource and the scope of a kind that
// the controller reads do not change while it runs.
type mappings struct {
	meta.RESTMapper

	found sync.Map // *meta.RESTMapping by schema.GroupVersionKind
}

// RESTMapping implements meta.RESTMapper. The result must not be changed.
func (m *mappings) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}

	key := kind.WithVersion(versions[0])
	if found, ok := m.found.Load(key); ok {
		return found.(*meta.RESTMapping), nil //nolint:forcetypeassert // nothing else is stored
	}

	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err == nil {
		m.found.Store(key, mapping)
	}

	return mapping, err
}
