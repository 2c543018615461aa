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

	mu          sync.Mutex
	expirations map[types.NamespacedName]time.Time
	renewals    map[types.NamespacedName]time.Time
	issued      map[types.NamespacedName]int
}

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
}
