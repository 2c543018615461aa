package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
)

func TestKubeconfigs(t *testing.T) {
	k := NewKubeconfigs()
	registry := prometheus.NewPedanticRegistry()

	if err := registry.Register(k); err != nil {
		t.Fatal(err)
	}

	a, b := types.NamespacedName{Namespace: "team", Name: "a"}, types.NamespacedName{Namespace: "team", Name: "b"}
	k.SetExpiration(a, time.Unix(1800000000, 0))
	k.SetExpiration(b, time.Unix(1900000000, 0))
	k.SetExpiration(b, time.Time{})
	k.SetRenewal(a, time.Unix(1700000000, 0))
	k.SetRenewal(b, time.Unix(1700000000, 0))
	k.SetRenewal(b, time.Time{})
	k.CountIssued(a)
	k.CountIssued(a)
	k.CountIssued(b)

	const want = `
# HELP omni_kubeconfig_expiration_timestamp_seconds When the kubeconfig that an OmniKubeconfigExport wrote expires, in seconds since 1970.
# TYPE omni_kubeconfig_expiration_timestamp_seconds gauge
omni_kubeconfig_expiration_timestamp_seconds{name="a",namespace="team"} 1.8e+09
# HELP omni_kubeconfig_renewal_timestamp_seconds When the kubeconfig that an OmniKubeconfigExport wrote is to be renewed, in seconds since 1970.
# TYPE omni_kubeconfig_renewal_timestamp_seconds gauge
omni_kubeconfig_renewal_timestamp_seconds{name="a",namespace="team"} 1.7e+09
# HELP omni_kubeconfigs_issued_total Kubeconfigs that Omni issued for an OmniKubeconfigExport since the controller started.
# TYPE omni_kubeconfigs_issued_total counter
omni_kubeconfigs_issued_total{name="a",namespace="team"} 2
omni_kubeconfigs_issued_total{name="b",namespace="team"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}

	k.Forget(a)
	k.Forget(b)

	if families, err := registry.Gather(); err != nil || len(families) != 0 {
		t.Errorf("series are left: %v, %v", families, err)
	}
}
