package metrics

import (
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// A run of a controller does not wait until a scrape has taken all that it collects.
func TestScrapeHoldsNobodyUp(t *testing.T) {
	objects, kubeconfigs, rollouts := NewObjects(), NewKubeconfigs(), NewRollouts()

	for which, one := range map[string]struct {
		collector prometheus.Collector
		set       func(types.NamespacedName)
	}{
		"objects":     {objects, func(name types.NamespacedName) { objects.SetInfo(Object{"OmniCluster", name}, nil, "") }},
		"kubeconfigs": {kubeconfigs, func(name types.NamespacedName) { kubeconfigs.SetRenewal(name, time.Unix(1, 0)) }},
		"rollouts":    {rollouts, func(name types.NamespacedName) { rollouts.Set(name, Rollout{}) }},
	} {
		t.Run(which, func(t *testing.T) {
			one.set(types.NamespacedName{Name: "a"})
			one.set(types.NamespacedName{Name: "b"})

			collected := make(chan prometheus.Metric)

			go func() {
				defer close(collected)

				one.collector.Collect(collected)
			}()

			<-collected // now it is at work, and nobody receives the second

			told := make(chan struct{})

			go func() {
				defer close(told)

				one.set(types.NamespacedName{Name: "a"})
			}()

			await.Receive(t, "it is told during the scrape", told)

			if _, more := <-collected; !more {
				t.Error("the scrape had ended before")
			}
		})
	}
}

// BenchmarkSetWhileScraped is how long a run waits at most to tell its metrics while 10,000 objects are scraped.
func BenchmarkSetWhileScraped(b *testing.B) {
	objects := NewObjects()
	conditions := []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Running"}}
	object := func(i int) Object {
		return Object{"OmniCluster", types.NamespacedName{Namespace: "team", Name: "cluster-" + strconv.Itoa(i)}}
	}

	for i := range 10_000 {
		objects.SetInfo(object(i), conditions, "demo")
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(objects)

	var longest time.Duration

	for b.Loop() {
		scraped := make(chan struct{})

		go func() {
			defer close(scraped)

			if _, err := registry.Gather(); err != nil {
				b.Error(err)
			}
		}()

		for i, done := 0, false; !done; i++ {
			before := time.Now()
			objects.SetInfo(object(i%10_000), conditions, "demo")
			longest = max(longest, time.Since(before))

			select {
			case <-scraped:
				done = true
			case <-time.After(100 * time.Microsecond):
			}
		}
	}

	b.ReportMetric(float64(longest.Microseconds()), "longest-wait-µs")
}
