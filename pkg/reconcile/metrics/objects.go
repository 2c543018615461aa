package metrics

import (
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Object identifies an object of one of our kinds.
type Object struct {
	// Kind is the object's kind, such as OmniCluster.
	Kind string
	types.NamespacedName
}

// PlanCounts are the numbers of changes in an OmniCluster's plan.
type PlanCounts struct {
	Creates, Updates, Destroys int
}

// info is the content of omni_resource_info for one object.
type info struct {
	ready, reason string
	suspended     bool
	cluster       string
}

// Objects keeps the metrics about objects. It is safe for concurrent use and
// implements prometheus.Collector.
type Objects struct {
	infoDesc, expirationDesc, renewalDesc, serverDesc, planDesc, driftDesc *prometheus.Desc

	mu          sync.Mutex
	infos       map[Object]info
	expirations map[types.NamespacedName]time.Time
	renewals    map[types.NamespacedName]time.Time
	servers     map[types.NamespacedName]v1alpha1.OmniServerStatus
	plans       map[types.NamespacedName]PlanCounts
	drifted     map[types.NamespacedName]bool
}

// NewObjects makes an empty collector.
func NewObjects() *Objects {
	return &Objects{
		infoDesc: prometheus.NewDesc("omni_resource_info",
			"One series for each object, always 1: its Ready condition and what it belongs to.",
			[]string{"kind", "namespace", "name", "ready", "reason", "suspended", "cluster"}, nil),
		expirationDesc: prometheus.NewDesc("omni_service_account_expiration_timestamp_seconds",
			"When the service account key of an OmniConnection expires, in seconds since 1970.",
			[]string{"namespace", "name"}, nil),
		renewalDesc: prometheus.NewDesc("omni_service_account_renewal_timestamp_seconds",
			"When the service account key of an OmniConnection should be renewed, in seconds since 1970.",
			[]string{"namespace", "name"}, nil),
		serverDesc: prometheus.NewDesc("omni_server_info",
			"One series for each OmniConnection, always 1: what its Omni says of itself.",
			[]string{"namespace", "name", "version", "api_version", "instance"}, nil),
		planDesc: prometheus.NewDesc("omni_plan_changes",
			"Changes in the current plan of an OmniCluster.",
			[]string{"namespace", "name", "action"}, nil),
		driftDesc: prometheus.NewDesc("omni_helm_drifted",
			"1 if live objects differ from the release of an OmniHelmRelease, else 0. Absent if that is not known.",
			[]string{"namespace", "name"}, nil),
		infos:       map[Object]info{},
		expirations: map[types.NamespacedName]time.Time{},
		renewals:    map[types.NamespacedName]time.Time{},
		servers:     map[types.NamespacedName]v1alpha1.OmniServerStatus{},
		plans:       map[types.NamespacedName]PlanCounts{},
		drifted:     map[types.NamespacedName]bool{},
	}
}

// SetInfo sets an object's conditions. The cluster is the OmniCluster that the object belongs to, and may be empty.
func (o *Objects) SetInfo(object Object, conditions []metav1.Condition, cluster string) {
	current := info{ready: string(metav1.ConditionUnknown), cluster: cluster}

	if ready := apimeta.FindStatusCondition(conditions, v1alpha1.ConditionReady); ready != nil {
		current.ready, current.reason = string(ready.Status), ready.Reason
	}

	current.suspended = apimeta.IsStatusConditionTrue(conditions, v1alpha1.ConditionSuspended)

	o.mu.Lock()
	defer o.mu.Unlock()

	o.infos[object] = current
}

// SetExpiration sets when the key of an OmniConnection expires. The zero time means that it never does, or that there
// is no key.
func (o *Objects) SetExpiration(connection types.NamespacedName, expires time.Time) {
	o.setTime(o.expirations, connection, expires)
}

// SetRenewal sets when the key of an OmniConnection should be renewed. The zero time means that it never expires.
func (o *Objects) SetRenewal(connection types.NamespacedName, due time.Time) {
	o.setTime(o.renewals, connection, due)
}

func (o *Objects) setTime(times map[types.NamespacedName]time.Time, connection types.NamespacedName, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()

	if at.IsZero() {
		delete(times, connection)
	} else {
		times[connection] = at
	}
}

// SetServer sets what the Omni of an OmniConnection says of itself; nil means that it is not known.
func (o *Objects) SetServer(connection types.NamespacedName, server *v1alpha1.OmniServerStatus) {
	o.mu.Lock()
	defer o.mu.Unlock()

	if server == nil {
		delete(o.servers, connection)
	} else {
		o.servers[connection] = *server
	}
}

// SetPlan sets the plan of an OmniCluster; nil means that there is none.
func (o *Objects) SetPlan(cluster types.NamespacedName, plan *PlanCounts) {
	o.mu.Lock()
	defer o.mu.Unlock()

	if plan == nil {
		delete(o.plans, cluster)
	} else {
		o.plans[cluster] = *plan
	}
}

// SetDrift sets whether live objects differ from the release of an OmniHelmRelease, as its conditions say. The condition
// is True as well if the comparison or the correction fails. That is another reason, and the release is not Ready then.
func (o *Objects) SetDrift(release types.NamespacedName, conditions []metav1.Condition) {
	o.mu.Lock()
	defer o.mu.Unlock()

	drifted := apimeta.FindStatusCondition(conditions, v1alpha1.ConditionDrifted)

	switch {
	case drifted != nil && drifted.Status == metav1.ConditionFalse:
		o.drifted[release] = false
	case drifted != nil && drifted.Status == metav1.ConditionTrue && drifted.Reason == v1alpha1.ReasonDriftFound:
		o.drifted[release] = true
	default:
		delete(o.drifted, release)
	}
}

// Forget removes every series of an object.
func (o *Objects) Forget(object Object) {
	o.mu.Lock()
	defer o.mu.Unlock()

	delete(o.infos, object)

	switch object.Kind {
	case "OmniConnection":
		delete(o.expirations, object.NamespacedName)
		delete(o.renewals, object.NamespacedName)
		delete(o.servers, object.NamespacedName)
	case "OmniCluster":
		delete(o.plans, object.NamespacedName)
	case "OmniHelmRelease":
		delete(o.drifted, object.NamespacedName)
	}
}

// Describe implements prometheus.Collector.
func (o *Objects) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- o.infoDesc
	descriptions <- o.expirationDesc
	descriptions <- o.renewalDesc
	descriptions <- o.serverDesc
	descriptions <- o.planDesc
	descriptions <- o.driftDesc
}

// Collect implements prometheus.Collector. It sends from copies: the receiver takes its time, and runs of controllers would
// wait for the lock.
func (o *Objects) Collect(collected chan<- prometheus.Metric) {
	o.mu.Lock()
	infos, expirations, renewals := maps.Clone(o.infos), maps.Clone(o.expirations), maps.Clone(o.renewals)
	plans, drifts, servers := maps.Clone(o.plans), maps.Clone(o.drifted), maps.Clone(o.servers)
	o.mu.Unlock()

	gauge := func(description *prometheus.Desc, value float64, labels ...string) {
		collected <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, labels...)
	}

	for object, i := range infos {
		gauge(o.infoDesc, 1, object.Kind, object.Namespace, object.Name, i.ready, i.reason, strconv.FormatBool(i.suspended), i.cluster)
	}

	for connection, expires := range expirations {
		gauge(o.expirationDesc, float64(expires.Unix()), connection.Namespace, connection.Name)
	}

	for connection, due := range renewals {
		gauge(o.renewalDesc, float64(due.Unix()), connection.Namespace, connection.Name)
	}

	for connection, server := range servers {
		gauge(o.serverDesc, 1, connection.Namespace, connection.Name, server.Version, strconv.FormatInt(server.APIVersion, 10), server.Instance)
	}

	for cluster, plan := range plans {
		gauge(o.planDesc, float64(plan.Creates), cluster.Namespace, cluster.Name, "create")
		gauge(o.planDesc, float64(plan.Updates), cluster.Namespace, cluster.Name, "update")
		gauge(o.planDesc, float64(plan.Destroys), cluster.Namespace, cluster.Name, "destroy")
	}

	for release, drifted := range drifts {
		value := 0.0
		if drifted {
			value = 1
		}

		gauge(o.driftDesc, value, release.Namespace, release.Name)
	}
}
