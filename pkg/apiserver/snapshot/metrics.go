package snapshot

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/component-base/metrics"
)

// Metrics are those of a schedule. Make them with NewMetrics.
type Metrics struct {
	lastSuccess *metrics.Gauge
	lastSize    *metrics.Gauge
	failures    *metrics.Counter
}

// NewMetrics makes the metrics and registers them, for example with legacyregistry.Register.
func NewMetrics(register func(metrics.Registerable) error) (*Metrics, error) {
	m := &Metrics{
		lastSuccess: metrics.NewGauge(&metrics.GaugeOpts{
			Name: "omni_apiserver_etcd_snapshot_last_success_timestamp_seconds",
			Help: "When the newest scheduled snapshot of the embedded etcd was taken, in seconds since 1970. 0 if there is none.",
		}),
		lastSize: metrics.NewGauge(&metrics.GaugeOpts{
			Name: "omni_apiserver_etcd_snapshot_last_size_bytes",
			Help: "Size of the newest scheduled snapshot of the embedded etcd.",
		}),
		failures: metrics.NewCounter(&metrics.CounterOpts{
			Name: "omni_apiserver_etcd_snapshot_failures_total",
			Help: "Scheduled snapshots of the embedded etcd that failed. The log says why.",
		}),
	}

	if err := errors.Join(register(m.lastSuccess), register(m.lastSize), register(m.failures)); err != nil {
		return nil, fmt.Errorf("register the metrics of snapshots: %w", err)
	}

	return m, nil
}

func (m *Metrics) succeeded(at time.Time, size int64) {
	m.lastSuccess.Set(float64(at.Unix()))
	m.lastSize.Set(float64(size))
}
