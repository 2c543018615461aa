package metrics

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Kubeconfigs keeps the metrics about exported kubeconfigs. It is safe for
// concurrent use and implements prometheus.Collector.
type Kubeconfigs struct {
	expirationDesc, renewalDesc, issuedDesc *prometheus.Desc
	checks                                  *prometheus.CounterVec

	mu          sync.Mutex
	expirations map[types.NamespacedName]time.Time
	renewals    map[types.NamespacedName]time.Time
	issued      map[types.NamespacedName]int
}

// Check is what became of a request with an exported kubeconfig through Omni's Kubernetes proxy.
type Check string

// The results of a Check.
const (
	// CheckAccepted: the cluster answered.
	CheckAccepted Check = "accepted"
	// CheckKeyDeleted: Omni does not have the key any more that signed the token.
	CheckKeyDeleted Check = "key_deleted"
	// CheckRefused: another answer 401.
	CheckRefused Check = "refused"
	// CheckUnanswered: any other answer, or none, which says nothing of the kubeconfig.
	CheckUnanswered Check = "unanswered"
	// CheckNotSent: the controller does not connect to the server.
	CheckNotSent Check = "not_sent"
)

// NewKubeconfigs makes an empty collector.
func NewKubeconfigs() *Kubeconfigs {
	labels := []string{"namespace", "name"}

	return &Kubeconfigs{
		expirationDesc: prometheus.NewDesc("omni_kubeconfig_expiration_timestamp_seconds",
			"When the kubeconfig that an OmniKubeconfigExport wrote expires, in seconds since 1970.", labels, nil),
		renewalDesc: prometheus.NewDesc("omni_kubeconfig_renewal_timestamp_seconds",
			"When the kubeconfig that an OmniKubeconfigExport wrote is to be renewed, in seconds since 1970.", labels, nil),
		issuedDesc: prometheus.NewDesc("omni_kubeconfigs_issued_total",
			"Kubeconfigs that Omni issued for an OmniKubeconfigExport since the controller started.", labels, nil),
		checks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "omni_kubeconfig_checks_total",
			Help: "Requests through Omni's Kubernetes proxy that try the kubeconfigs of OmniKubeconfigExports out, by result.",
		}, []string{"result"}),
		expirations: map[types.NamespacedName]time.Time{},
		renewals:    map[types.NamespacedName]time.Time{},
		issued:      map[types.NamespacedName]int{},
	}
}

// SetExpiration sets when the kubeconfig of an OmniKubeconfigExport expires. The zero time means that there is none.
func (k *Kubeconfigs) SetExpiration(export types.NamespacedName, expires time.Time) {
	k.set(k.expirations, export, expires)
}

// SetRenewal sets when the kubeconfig of an OmniKubeconfigExport is to be renewed. The zero time means that there is none.
func (k *Kubeconfigs) SetRenewal(export types.NamespacedName, due time.Time) {
	k.set(k.renewals, export, due)
}

func (k *Kubeconfigs) set(times map[types.NamespacedName]time.Time, export types.NamespacedName, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()

	if at.IsZero() {
		delete(times, export)
	} else {
		times[export] = at
	}
}

// CountIssued counts one kubeconfig that Omni issued.
func (k *Kubeconfigs) CountIssued(export types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()

	k.issued[export]++
}

// CountCheck counts one request that tried a kubeconfig out.
func (k *Kubeconfigs) CountCheck(result Check) { k.checks.WithLabelValues(string(result)).Inc() }

// Forget removes every series of an OmniKubeconfigExport.
func (k *Kubeconfigs) Forget(export types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()

	delete(k.expirations, export)
	delete(k.renewals, export)
	delete(k.issued, export)
}

// Describe implements prometheus.Collector.
func (k *Kubeconfigs) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- k.expirationDesc
	descriptions <- k.renewalDesc
	descriptions <- k.issuedDesc
	k.checks.Describe(descriptions)
}

// Collect implements prometheus.Collector.
func (k *Kubeconfigs) Collect(collected chan<- prometheus.Metric) {
	k.mu.Lock()
	expirations, renewals, issued := maps.Clone(k.expirations), maps.Clone(k.renewals), maps.Clone(k.issued)
	k.mu.Unlock()

	for export, expires := range expirations {
		collected <- prometheus.MustNewConstMetric(k.expirationDesc, prometheus.GaugeValue, float64(expires.Unix()), export.Namespace, export.Name)
	}

	for export, due := range renewals {
		collected <- prometheus.MustNewConstMetric(k.renewalDesc, prometheus.GaugeValue, float64(due.Unix()), export.Namespace, export.Name)
	}

	for export, count := range issued {
		collected <- prometheus.MustNewConstMetric(k.issuedDesc, prometheus.CounterValue, float64(count), export.Namespace, export.Name)
	}

	k.checks.Collect(collected)
}

// Rollouts keeps the metrics about rollout policies. It is safe for concurrent use and implements prometheus.Collector.
type Rollouts struct {
	clustersDesc, stoppedDesc, opensDesc, oldestDesc, overridesDesc *prometheus.Desc

	mu        sync.Mutex
	policies  map[types.NamespacedName]Rollout
	overrides map[types.NamespacedName]int
}

// Rollout has the metrics of one OmniRolloutPolicy.
type Rollout struct {
	// Stages are its stages, by name.
	Stages map[string]RolloutStage
	// Stopped is true if more clusters have failed than allowed.
	Stopped bool
}

// RolloutStage has the metrics of one stage.
type RolloutStage struct {
	// Clusters counts its clusters by state: held, admitted, failed.
	Clusters map[string]int
	// Opens is when changes may begin again by windows and freezes; zero if they may now, or never.
	Opens time.Time
	// OldestHeld is since when the changes have waited that wait longest; zero if none do.
	OldestHeld time.Time
}

// NewRollouts makes an empty collector.
func NewRollouts() *Rollouts {
	policy, stage := []string{"namespace", "policy"}, []string{"namespace", "policy", "stage"}

	return &Rollouts{
		clustersDesc: prometheus.NewDesc("omni_rollout_clusters",
			"Clusters of a stage of an OmniRolloutPolicy by what becomes of their changes: held, admitted or failed.",
			[]string{"namespace", "policy", "stage", "state"}, nil),
		stoppedDesc: prometheus.NewDesc("omni_rollout_stopped",
			"1 while more clusters of an OmniRolloutPolicy have failed than may, so that no changes begin; else 0.", policy, nil),
		opensDesc: prometheus.NewDesc("omni_rollout_next_open_timestamp_seconds",
			"When changes of a stage may begin again by its windows and freezes, in seconds since 1970. Absent while they may.", stage, nil),
		oldestDesc: prometheus.NewDesc("omni_rollout_oldest_held_timestamp_seconds",
			"Since when the changes of a stage have waited that wait longest, in seconds since 1970. Absent if none wait.", stage, nil),
		overridesDesc: prometheus.NewDesc("omni_rollout_overrides_total",
			"Clusters whose changes began out of turn by the annotation rollout-override since the controller started.", policy, nil),
		policies: map[types.NamespacedName]Rollout{}, overrides: map[types.NamespacedName]int{},
	}
}

// Set sets the metrics of an OmniRolloutPolicy.
func (r *Rollouts) Set(policy types.NamespacedName, rollout Rollout) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.policies[policy] = rollout
}

// CountOverride counts a cluster whose changes began out of turn.
func (r *Rollouts) CountOverride(policy types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.overrides[policy]++
}

// Forget removes every series of an OmniRolloutPolicy.
func (r *Rollouts) Forget(policy types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()

	delete(r.policies, policy)
	delete(r.overrides, policy)
}

// Describe implements prometheus.Collector.
func (r *Rollouts) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{r.clustersDesc, r.stoppedDesc, r.opensDesc, r.oldestDesc, r.overridesDesc} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (r *Rollouts) Collect(collected chan<- prometheus.Metric) {
	r.mu.Lock()
	policies, overrides := maps.Clone(r.policies), maps.Clone(r.overrides)
	r.mu.Unlock()

	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		collected <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}

	for name, policy := range policies {
		stopped := 0.0
		if policy.Stopped {
			stopped = 1
		}

		gauge(r.stoppedDesc, stopped, name.Namespace, name.Name)

		for stage, one := range policy.Stages {
			for state, count := range one.Clusters {
				gauge(r.clustersDesc, float64(count), name.Namespace, name.Name, stage, state)
			}

			if !one.Opens.IsZero() {
				gauge(r.opensDesc, float64(one.Opens.Unix()), name.Namespace, name.Name, stage)
			}

			if !one.OldestHeld.IsZero() {
				gauge(r.oldestDesc, float64(one.OldestHeld.Unix()), name.Namespace, name.Name, stage)
			}
		}
	}

	for name, count := range overrides {
		collected <- prometheus.MustNewConstMetric(r.overridesDesc, prometheus.CounterValue, float64(count), name.Namespace, name.Name)
	}
}
