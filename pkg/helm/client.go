package helm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/kubeclient"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
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
	// Validated remembers the kinds whose fields the API server behind Config validates. Nil remembers none.
	Validated kubeclient.Kinds
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
