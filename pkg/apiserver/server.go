package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/chain"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/quota"
)

// Server is the API server of omni.texashpc.com.
type Server struct {
	// Generic is the server underneath.
	Generic *genericapiserver.GenericAPIServer
	// Ledger counts what is stored; its Collector has the metrics.
	Ledger *quota.Ledger

	requestGracePeriod time.Duration // as in Config
}

// Run serves until the context ends, and then stops in the library's order: /readyz fails, the shutdown delay passes,
// new requests are refused, running requests finish or are ended after requestGracePeriod, the storage is closed. After Run
// returns, nothing uses the storage any more.
func (s *Server) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		klog.InfoS("Stopping: /readyz fails from now on", "servesFor", s.Generic.ShutdownDelayDuration, "thenFinishesWithin", s.requestGracePeriod)
	})()

	if err := s.Generic.PrepareRun().RunWithContext(ctx); err != nil {
		return fmt.Errorf("serve: %w", err)
	}

	return nil
}

// StoreIn makes the server keep the objects of every kind in a storage of the caller's, such as that of an etcd in this
// process. The other options of the storage stay: the endpoint of etcd is for the health checks.
func StoreIn(config *genericapiserver.Config, storage generic.StorageDecorator) {
	config.RESTOptionsGetter = decorated{config.RESTOptionsGetter, storage}
}

// decorated returns the options of a getter with another storage.
type decorated struct {
	generic.RESTOptionsGetter

	storage generic.StorageDecorator
}

// GetRESTOptions returns the options of a kind.
func (d decorated) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := d.RESTOptionsGetter.GetRESTOptions(resource, example)
	options.Decorator = d.storage

	return options, err
}

// storageSpacePath is the path of a check that fails with the reason while the storage needs attention.
const storageSpacePath = "/readyz/etcd-space"

// ReportStorageSpace publishes the notice about the storage; an empty notice means that all is well.
// /readyz/etcd-space fails with the notice, and /readyz?verbose has a line with it.
//
// /readyz itself does not fail: an API server without ready replicas is taken out of the hub's API, and that would
// also end the reads and deletions that still work and that free space.
func ReportStorageSpace(config *genericapiserver.Config, notice func() string) {
	// Inside, the path is authorised like those of all single checks.
	chain.Inside(config, func(next http.Handler, _ *genericapiserver.Config) http.Handler {
		return withStorageSpace(next, notice)
	})
}

func withStorageSpace(next http.Handler, notice func() string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == storageSpacePath && notice() != "":
			http.Error(w, "internal server error: "+notice(), http.StatusInternalServerError)
		case path == storageSpacePath:
			fmt.Fprint(w, "ok")
		case path == "/readyz" && r.URL.Query().Has("verbose") && notice() != "":
			next.ServeHTTP(w, r)
			fmt.Fprintf(w, "[!]etcd-space does not fail readiness, but: %s\n", notice())
		default:
			next.ServeHTTP(w, r)
		}
	})
}

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
