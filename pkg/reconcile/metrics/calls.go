package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Calls measures calls to Omni. It is safe for concurrent use and implements
// prometheus.Collector.
type Calls struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	waited   *prometheus.CounterVec

	mu    sync.Mutex
	names map[string]string // a connection's namespace/name by its UID
}

// NewCalls returns a collector without calls.
func NewCalls() *Calls {
	return &Calls{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "omni_api_requests_total",
			Help: "Finished calls to Omni. A watch counts when it ends.",
		}, []string{"connection", "method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "omni_api_request_duration_seconds",
			Help:    "How long calls to Omni took, in seconds. Watches are not in it.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"connection", "method"}),
		waited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "omni_api_throttled_seconds_total",
			Help: "How long calls to Omni waited for the controller's own rate limit, in seconds.",
		}, []string{"connection"}),
		names: map[string]string{},
	}
}

// Name sets the OmniConnection (namespace/name) of a UID.
func (c *Calls) Name(uid, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.names[uid] = name
}

// Forget removes every series of an OmniConnection (namespace/name).
func (c *Calls) Forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for uid, known := range c.names {
		if known == name {
			delete(c.names, uid)
		}
	}

	c.requests.DeletePartialMatch(prometheus.Labels{"connection": name})
	c.duration.DeletePartialMatch(prometheus.Labels{"connection": name})
	c.waited.DeleteLabelValues(name)
}

// Throttle counts how long a call of the connection with the UID waited for the rate limit.
func (c *Calls) Throttle(uid string, waited time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if name, known := c.names[uid]; known {
		c.waited.WithLabelValues(name).Add(waited.Seconds())
	}
}

// Observe counts one finished call of the connection with the UID. It ignores connections without a Name: their series
// would never be removed.
func (c *Calls) Observe(uid, method, code string, duration time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	name, known := c.names[uid]
	if !known {
		return
	}

	c.requests.WithLabelValues(name, method, code).Inc()

	if method != watchMethod {
		c.duration.WithLabelValues(name, method).Observe(duration.Seconds())
	}
}

// watchMethod is the one call that lasts as long as its caller wants.
const watchMethod = "/cosi.resource.State/Watch"

// Describe implements prometheus.Collector.
func (c *Calls) Describe(descriptions chan<- *prometheus.Desc) {
	c.requests.Describe(descriptions)
	c.duration.Describe(descriptions)
	c.waited.Describe(descriptions)
}

// Collect implements prometheus.Collector.
func (c *Calls) Collect(collected chan<- prometheus.Metric) {
	c.requests.Collect(collected)
	c.duration.Collect(collected)
	c.waited.Collect(collected)
}
