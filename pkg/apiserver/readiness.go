package apiserver

import (
	"net/http"
	"strings"
	"sync"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/klog/v2"
)

const (
	// quietTime is how long a check may fail at the start before the log says so.
	quietTime = 10 * time.Second
	// failureTold is how often the log repeats a failure that goes on.
	failureTold = time.Minute
	// storageTolerance is how long the storage may fail before a server that was ready becomes not ready. etcd's
	// client asks the members in turn: while one of three hangs, every third check fails on every replica, and at
	// some moments on all replicas at once. Without the tolerance that would take the API away from everybody,
	// although two thirds of the requests are served.
	storageTolerance = 5 * time.Second
	// storageChecks is the prefix of the names of the library's etcd checks.
	storageChecks = "etcd"
)

// tellReadiness logs why this server is not ready, and lets the storage fail for some seconds before the server
// becomes not ready. The library leaves the reasons out of /readyz, which everybody may read, and logs them only at a
// verbosity that nobody uses. Without tellReadiness, the only thing to see is a Pod that is not ready.
//
// Call it after all checks were added; it covers those. The library adds a few checks about its own start afterwards.
func tellReadiness(logger klog.Logger, config *genericapiserver.Config) {
	began := time.Now()

	for i, check := range config.ReadyzChecks {
		config.ReadyzChecks[i] = newToldCheck(logger, check, began)
	}
}

func newToldCheck(logger klog.Logger, check healthz.HealthChecker, began time.Time) *toldCheck {
	told := &toldCheck{HealthChecker: check, logger: logger, quietUntil: began.Add(quietTime)}
	if strings.HasPrefix(check.Name(), storageChecks) {
		told.tolerance = storageTolerance
	}

	return told
}

// toldCheck is a check that logs when its result changes.
type toldCheck struct {
	healthz.HealthChecker

	logger klog.Logger
	// quietUntil is the end of the start phase, in which failures are not logged.
	quietUntil time.Time
	// tolerance is how long the check may fail after it has passed once.
	tolerance time.Duration

	mu sync.Mutex
	// passed says whether the check has passed once.
	passed bool
	// since is when the check began to fail; zero while it passes.
	since time.Time
	// told is when the failure was last logged; zero if it was not.
	told time.Time
}

// GroupName implements healthz.GroupedHealthChecker: probes may exclude checks by the name of their group. A check
// without a group is excluded by its own name.
func (c *toldCheck) GroupName() string {
	if grouped, ok := c.HealthChecker.(healthz.GroupedHealthChecker); ok {
		return grouped.GroupName()
	}

	return c.Name()
}

// Check implements healthz.HealthChecker.
func (c *toldCheck) Check(request *http.Request) error {
	err := c.HealthChecker.Check(request)

	c.mu.Lock()
	defer c.mu.Unlock()

	now := time.Now()

	if err == nil {
		if !c.told.IsZero() {
			c.logger.Info("Ready again", "check", c.Name(), "after", now.Sub(c.since).Round(time.Second))
		}

		c.passed, c.since, c.told = true, time.Time{}, time.Time{}

		return nil
	}

	if c.since.IsZero() {
		c.since = now
	}

	if c.passed && now.Sub(c.since) < c.tolerance {
		return nil
	}

	if now.After(c.quietUntil) && (c.told.IsZero() || now.Sub(c.told) >= failureTold) {
		c.told = now

		c.logger.Error(err, "Not ready: /readyz fails, and kubelet sends nobody here", "check", c.Name(), "since", c.since.Format(time.RFC3339))
	}

	return err
}
