package snapshot_test

import (
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/component-base/metrics"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
	"omni.texashpc.com/omni-cluster-operator/test/etcdtest"
)

func startEtcd(t *testing.T) *clientv3.Client {
	t.Helper()

	client, err := etcdtest.Start(t, t.TempDir()).Client()
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { client.Close() })

	return client
}

// measured is a set of metrics and how to read one of them.
func measured(t *testing.T) (*snapshot.Metrics, func(name string) float64) {
	t.Helper()

	registry := metrics.NewKubeRegistry()

	made, err := snapshot.NewMetrics(registry.Register)
	if err != nil {
		t.Fatal(err)
	}

	return made, func(name string) float64 {
		t.Helper()

		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}

		for _, family := range families {
			if metric := family.GetMetric()[0]; strings.HasSuffix(family.GetName(), name) {
				return metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			}
		}

		t.Fatalf("no metric %s", name)

		return 0
	}
}
