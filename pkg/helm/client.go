// Package helm runs Helm releases in workload clusters. It and its packages
// below are the only importers of the Helm library.
//
// The way of a release is observe, decide, act:
//   - Client.Observe reads what Helm's storage in the workload cluster says, from
//     labels alone: an idle release costs one small list.
//   - Decide is a pure function from what is wanted and what was observed to the
//     next Decision. It needs no memory of its own.
//   - Client.Run does one action and blocks while it waits, so call it where that
//     holds up nobody. It reads a record once, and of the history only what Helm
//     looks into.
//
// What a revision was made from is written as labels on Helm's own record of it:
// the digest of chart, values and options, the attempt, the owner. So a restart,
// a lost status or a new kubeconfig causes no revision. A revision that a crash
// left pending is made again under its own number, but not while the process
// that began it may still be at it.
//
// Differences between the stored manifest and the cluster are found by
// Client.Drift with server-side dry runs.
//
// Errors of actions are *Error; they hold no value that came from a Secret.
//
// What needs no Client is in the packages below:
//   - charts finds and downloads charts, and render has them rendered in worker processes.
//   - values merges what a chart is rendered with.
//   - drift bounds and reads manifests, and compares an object with what the cluster has.
//   - kubeclient is what stands between Helm and the cluster.
//
// Package test/helmlive has the tests with a real kube-apiserver.
package helm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/kubeclient"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
)

// FieldManager is the name under which releases own fields in the workload
// clusters. It must never change: objects would have two owners.
const FieldManager = "omni-controller"

// DefaultGrace is how long an action may take to end in order after it was
// told to stop or has used up its timeout.
const DefaultGrace = 20 * time.Second

// Target is one release in one cluster.
type Target struct {
	// Config leads to the workload cluster.
	Config *rest.Config
	// Scrub takes the credentials of Config out of a text: a server may send back what it was sent. May be nil.
	Scrub func(text string) string
	// Name is Helm's name of the release, Namespace where it is.
	Name, Namespace string
	// Renderers render what is installed and upgraded; other actions do without.
	Renderers *render.Pool
	// Tenant shares the places of Renderers with all targets of the same one.
	Tenant string
}

// Client works on one release. It is safe for concurrent use, but two actions
// on one release must not run at once.
type Client struct {
	target Target
	log    logr.Logger
	grace  time.Duration
}

// prepareProcess sets what Helm has one of for the whole process.
//
//nolint:gochecknoglobals // guards global variables of Helm and of the standard library
var prepareProcess sync.Once

// forProcess names Helm's field manager, and silences the loggers of the standard
// library: Helm's own warnings about values go there, values included, past the
// logger that it is given. Nothing else of the controller writes to them.
func forProcess() {
	kube.ManagedFieldsManager = FieldManager

	slog.SetDefault(slog.New(slog.DiscardHandler)) // of package log, too
}

// New makes a client. Helm's own log goes to log. No connection is made. A
// grace of 0 means DefaultGrace.
func New(target Target, log logr.Logger, grace time.Duration) *Client {
	prepareProcess.Do(forProcess)

	if grace <= 0 {
		grace = DefaultGrace
	}

	return &Client{target: target, log: log, grace: grace}
}

// metadata is a client that reads nothing but metadata.
func (c *Client) metadata(ctx context.Context) (metadata.Interface, error) {
	client, err := metadata.NewForConfig(kubeclient.Bounded(ctx, c.target.Config))
	if err != nil {
		return nil, fmt.Errorf("make a client for the workload cluster: %w", err)
	}

	return client, nil
}

// Details is what the record of a revision says about its chart.
type Details struct {
	// Number is Helm's number of the revision.
	Number int
	// Chart, ChartVersion and AppVersion are those of the chart.
	Chart, ChartVersion, AppVersion string
	// Description is what Helm noted last about the revision. It may hold values.
	Description string
	// Changed is when the revision was deployed or changed last.
	Changed time.Time
}

// Details reads the whole record of a revision. It keeps nothing of it, so it does not wait for memory.
func (c *Client) Details(ctx context.Context, revision int) (Details, error) {
	record, err := c.record(ctx, revision, nil)
	if err != nil {
		return Details{}, err
	}

	details := Details{Number: record.Version}

	if record.Chart != nil && record.Chart.Metadata != nil {
		details.Chart, details.ChartVersion = record.Chart.Metadata.Name, record.Chart.Metadata.Version
		details.AppVersion = record.Chart.Metadata.AppVersion
	}

	if record.Info != nil {
		details.Description, details.Changed = c.scrub(record.Info.Description), record.Info.LastDeployed
	}

	return details, nil
}

// ErrRevisionGone is a revision that has no record any more.
var ErrRevisionGone = errors.New("the revision has no record any more")

// record reads the record of a revision. It takes memory of the share, unless that is nil.
func (c *Client) record(ctx context.Context, revision int, memory *memoryShare) (*releasev1.Release, error) {
	x, err := c.open(ctx, values.Values{}, memory)
	if err != nil {
		return nil, err
	}

	found, err := x.config.Releases.Get(c.target.Name, revision)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, ErrRevisionGone
	}

	var full *fullError
	if errors.As(err, &full) {
		return nil, full
	}

	if err != nil {
		return nil, classify(fmt.Sprintf("read revision %d", revision), err, c.redactorFor(values.Values{}))
	}

	return asRelease(found)
}

func asRelease(found release.Releaser) (*releasev1.Release, error) {
	record, ok := found.(*releasev1.Release)
	if !ok {
		return nil, fmt.Errorf("the record of the release has the unknown type %T", found)
	}

	return record, nil
}

// The pauses before a record is written again double from the first to the longest.
const (
	firstWritePause   = 500 * time.Millisecond
	longestWritePause = 10 * time.Second
)

// execution is what one action uses. What only reads has no request.
type execution struct {
	config  *action.Configuration
	storage *resumable
	last    *lastError
	values  *redactor
	memory  *memoryShare // may be nil
	older   RecordSize   // of what is kept of older revisions; see keepOlder
	guard   *kubeclient.Guard

	request Request
	// Waiting ends with soft, everything else with hard; see Run.
	hard, soft context.Context //nolint:containedctx // they are the action's
}

// mayChange is asked before the action changes the first thing. The error is that of an action that is not to begin any more.
func (x *execution) mayChange() error {
	if x.request.Begin == nil {
		return nil
	}

	return x.request.Begin()
}

// newExecution makes what an action uses. It is asked to stop with ctx; its requests end with hard.
func (c *Client) newExecution(ctx, hard, soft context.Context, request Request, memory *memoryShare) (*execution, error) {
	x, err := c.open(hard, request.Values, memory)
	if err != nil {
		return nil, err
	}

	x.request, x.hard, x.soft = request, hard, soft
	x.guard.TakeOwnership = request.Settings.TakeOwnership
	x.storage.hidden, x.storage.process = request.Decision.Resume, request.Wanted.Process
	x.storage.again = x.writeAgain
	x.storage.owner, x.storage.hub, x.storage.generation = request.Wanted.Owner, request.Wanted.Hub, request.Wanted.Generation
	if request.Observed != nil {
		x.storage.list = func() (Observed, error) { return *request.Observed, nil }
	}

	// A rollback that was stopped is decided anew.
	if action := request.Decision.Action; action == ActionInstall || action == ActionUpgrade {
		x.storage.stopped = func() bool { return ctx.Err() != nil }
	}

	x.config.Releases.MaxHistory = request.Settings.MaxHistory

	return x, nil
}

// open makes Helm's configuration for one action. All its requests end with ctx. Records that are read take memory of
// the share, unless that is nil.
func (c *Client) open(ctx context.Context, merged values.Values, memory *memoryShare) (*execution, error) {
	clients, err := kubeclient.NewGetter(kubeclient.Bounded(ctx, c.target.Config), c.target.Namespace)
	if err != nil {
		return nil, err
	}

	last, redactor := &lastError{}, c.redactorFor(merged)
	config := action.NewConfiguration(action.ConfigurationSetLogger(&logHandler{log: c.log, values: redactor, last: last}))

	if err := config.Init(clients, c.target.Namespace, "secret"); err != nil {
		return nil, fmt.Errorf("prepare Helm: %w", err)
	}

	if err := kubeclient.ValidateByServer(config); err != nil {
		return nil, fmt.Errorf("prepare Helm: %w", err)
	}

	guard := &kubeclient.Guard{Release: c.release()}
	if err := guard.Watch(config); err != nil {
		return nil, fmt.Errorf("prepare Helm: %w", err)
	}

	kept, err := NewRecords(ctx, config, c.target.Namespace, memory.admit)
	if err != nil {
		return nil, fmt.Errorf("prepare Helm: %w", err)
	}

	storage := newResumable(kept, c.target.Name, func() (Observed, error) { return c.Observe(ctx) })
	storage.redact = redactor.redact
	config.Releases.Driver = storage
	guard.Hooked = func(info *resource.Info) bool { return c.namedByHook(storage, info) }

	return &execution{config: config, storage: storage, last: last, values: redactor, guard: guard, memory: memory}, nil
}

// writeAgain waits before a record is written again, and reports whether there is time for that.
func (x *execution) writeAgain(tries int) bool {
	select {
	case <-x.hard.Done():
		return false
	case <-time.After(limiter.Jitter(limiter.BackoffAfter(tries, firstWritePause, longestWritePause))):
		return x.hard.Err() == nil
	}
}

// redactor is what has to be kept out of the messages of one action: values, and
// the credentials that lead to the cluster. It grows when an action finds older
// values. It is safe for concurrent use.
type redactor struct {
	scrub func(text string) string // takes the credentials out; nil if there are none

	mu     sync.RWMutex
	values values.Values
}

// redactorFor keeps values and the client's own credentials out of messages.
func (c *Client) redactorFor(merged values.Values) *redactor {
	return &redactor{scrub: c.scrub, values: merged}
}

// scrub takes the client's credentials out of a text.
func (c *Client) scrub(text string) string {
	if c.target.Scrub == nil {
		return text
	}

	return c.target.Scrub(text)
}

// redact makes a text fit for conditions and logs.
func (d *redactor) redact(text string) string {
	if d == nil {
		return values.Values{}.Redact(text)
	}

	// First, or a value that is a part of a credential would leave the rest of it.
	if d.scrub != nil {
		text = d.scrub(text)
	}

	d.mu.RLock()
	defer d.mu.RUnlock()

	return d.values.Redact(text)
}

// add keeps the values of an older revision out of messages, too. Which of them
// came from a Secret is not known any more: all count that are not among today's
// values that did not. It returns the size of what is kept for that beside what was
// kept before.
func (d *redactor) add(config map[string]any) (added foreign.Size) {
	d.mu.Lock()
	defer d.mu.Unlock()

	d.values, added = d.values.WithOlder(config)

	return added
}
