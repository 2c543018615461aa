package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// gather shows the series of a collector as `name{a="b",c="d"} value`.
func gather(t *testing.T, collector prometheus.Collector) []string {
	t.Helper()

	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(collector); err != nil {
		t.Fatal(err)
	}

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	var shown []string

	for _, family := range families {
		for _, metric := range family.GetMetric() {
			shown = append(shown, family.GetName()+labels(metric)+" "+value(metric))
		}
	}

	return shown
}

func labels(metric *dto.Metric) string {
	parts := make([]string, 0, len(metric.GetLabel()))
	for _, label := range metric.GetLabel() {
		parts = append(parts, label.GetName()+"="+label.GetValue())
	}

	return "{" + strings.Join(parts, ",") + "}"
}

func value(metric *dto.Metric) string {
	switch {
	case metric.GetGauge() != nil:
		return metric.GetGauge().String()
	case metric.GetCounter() != nil:
		return strings.Split(metric.GetCounter().String(), " ")[0]
	default:
		return "histogram"
	}
}

func TestObjects(t *testing.T) {
	objects := NewObjects()
	cluster := types.NamespacedName{Namespace: "team", Name: "demo"}
	connection := types.NamespacedName{Namespace: "team", Name: "main"}

	objects.SetInfo(Object{"OmniCluster", cluster}, nil, "demo")
	objects.SetInfo(Object{"OmniCluster", cluster}, []metav1.Condition{
		{Type: "Ready", Status: "True", Reason: "Running"}, {Type: "Suspended", Status: "True"},
	}, "demo")
	objects.SetInfo(Object{"OmniConnection", connection}, []metav1.Condition{{Type: "Ready", Status: "False", Reason: "KeyExpired"}}, "")
	objects.SetExpiration(connection, time.Unix(1700000000, 0))
	objects.SetRenewal(connection, time.Unix(1600000000, 0))
	objects.SetPlan(cluster, &PlanCounts{Creates: 1, Destroys: 3})

	want := []string{
		`omni_plan_changes{action=create,name=demo,namespace=team} value:1`,
		`omni_plan_changes{action=destroy,name=demo,namespace=team} value:3`,
		`omni_plan_changes{action=update,name=demo,namespace=team} value:0`,
		`omni_resource_info{cluster=,kind=OmniConnection,name=main,namespace=team,ready=False,reason=KeyExpired,suspended=false} value:1`,
		`omni_resource_info{cluster=demo,kind=OmniCluster,name=demo,namespace=team,ready=True,reason=Running,suspended=true} value:1`,
		`omni_service_account_expiration_timestamp_seconds{name=main,namespace=team} value:1.7e+09`,
		`omni_service_account_renewal_timestamp_seconds{name=main,namespace=team} value:1.6e+09`,
	}
	if diff := cmp.Diff(want, gather(t, objects)); diff != "" {
		t.Error(diff)
	}

	objects.Forget(Object{"OmniCluster", cluster})
	objects.Forget(Object{"OmniConnection", connection})

	if left := gather(t, objects); left != nil {
		t.Errorf("series of objects that are gone: %q", left)
	}
}

// Whether a release differs is there only while that is known.
func TestDrift(t *testing.T) {
	objects := NewObjects()
	name := types.NamespacedName{Namespace: "team", Name: "app"}

	for _, step := range []struct {
		status metav1.ConditionStatus
		reason string
		want   []string
	}{
		{metav1.ConditionTrue, "DriftFound", []string{`omni_helm_drifted{name=app,namespace=team} value:1`}},
		{metav1.ConditionFalse, "NoDrift", []string{`omni_helm_drifted{name=app,namespace=team} value:0`}},
		{metav1.ConditionUnknown, "Disabled", nil},
		{metav1.ConditionFalse, "DriftCorrected", []string{`omni_helm_drifted{name=app,namespace=team} value:0`}},
		{metav1.ConditionTrue, "Unreachable", nil},
		{metav1.ConditionTrue, "DriftFound", []string{`omni_helm_drifted{name=app,namespace=team} value:1`}},
	} {
		objects.SetDrift(name, []metav1.Condition{{Type: "Ready", Status: "True"}, {Type: "Drifted", Status: step.status, Reason: step.reason}})

		if diff := cmp.Diff(step.want, gather(t, objects)); diff != "" {
			t.Errorf("%s, %s: %s", step.status, step.reason, diff)
		}
	}

	objects.Forget(Object{"OmniHelmRelease", name})

	if left := gather(t, objects); left != nil {
		t.Errorf("series of a release that is gone: %q", left)
	}

	objects.SetDrift(name, nil)

	if left := gather(t, objects); left != nil {
		t.Errorf("series of a release without the condition: %q", left)
	}
}

func TestValuesThatEnd(t *testing.T) {
	objects := NewObjects()
	name := types.NamespacedName{Namespace: "team", Name: "main"}

	objects.SetExpiration(name, time.Unix(1, 0))
	objects.SetExpiration(name, time.Time{})
	objects.SetRenewal(name, time.Unix(1, 0))
	objects.SetRenewal(name, time.Time{})
	objects.SetPlan(name, &PlanCounts{})
	objects.SetPlan(name, nil)

	if left := gather(t, objects); left != nil {
		t.Error(left)
	}
}

func TestCalls(t *testing.T) {
	calls := NewCalls()

	calls.Observe("uid-1", "/cosi.resource.State/Get", "OK", time.Second)
	calls.Name("uid-1", "team/main")
	calls.Observe("uid-1", "/cosi.resource.State/Get", "OK", time.Second)
	calls.Observe("uid-1", "/cosi.resource.State/Get", "OK", time.Second)
	calls.Observe("uid-1", "/cosi.resource.State/Get", "NotFound", time.Second)
	calls.Observe("uid-1", "/cosi.resource.State/Watch", "Canceled", time.Hour)
	calls.Throttle("uid-1", 1500*time.Millisecond)
	calls.Throttle("uid-1", time.Second)
	calls.Throttle("uid-2", time.Second)

	want := []string{
		`omni_api_request_duration_seconds{connection=team/main,method=/cosi.resource.State/Get} histogram`,
		`omni_api_requests_total{code=Canceled,connection=team/main,method=/cosi.resource.State/Watch} value:1`,
		`omni_api_requests_total{code=NotFound,connection=team/main,method=/cosi.resource.State/Get} value:1`,
		`omni_api_requests_total{code=OK,connection=team/main,method=/cosi.resource.State/Get} value:2`,
		`omni_api_throttled_seconds_total{connection=team/main} value:2.5`,
	}
	if diff := cmp.Diff(want, gather(t, calls)); diff != "" {
		t.Error(diff)
	}

	calls.Forget("team/main")
	calls.Observe("uid-1", "/cosi.resource.State/Get", "OK", time.Second)
	calls.Throttle("uid-1", time.Second)

	if left := gather(t, calls); left != nil {
		t.Errorf("series of a connection that is gone: %q", left)
	}
}
