package helmlive

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// requests counts what is asked of a workload cluster.
type requests struct {
	mu   sync.Mutex
	seen []string
}

// counted makes a configuration whose requests are counted.
func (c *requests) counted(config *rest.Config) *rest.Config {
	copied := rest.CopyConfig(config)
	copied.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			c.mu.Lock()
			c.seen = append(c.seen, request.Method+" "+request.URL.Path)
			c.mu.Unlock()

			return next.RoundTrip(request)
		})
	})

	return copied
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// take returns what was asked since the last take: lists of Secrets, requests for single Secrets, all.
func (c *requests) take() (lists, reads int, all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for _, request := range c.seen {
		switch {
		case strings.HasPrefix(request, "GET ") && strings.HasSuffix(request, "/secrets"):
			lists++
		case strings.HasPrefix(request, "GET ") && strings.Contains(request, "/secrets/"):
			reads++
		}
	}

	all, c.seen = c.seen, nil
	slices.Sort(all)

	return lists, reads, all
}

// What one step asks of the workload cluster, with a history of ten revisions: one list of labels to decide, one
// record to upgrade. Helm by itself lists all records, with their charts, seven or eight times.
func TestFewRequests(t *testing.T) {
	var c requests

	r := newReleaseFor(t, c.counted(cluster.RESTConfig()))
	version := func(i int) chartserver.Chart { return chartserver.ConfigMapChart("demo", "1.0."+string(rune('0'+i))) }

	for _, test := range []struct {
		name         string
		chart        chartserver.Chart
		action       helm.Action
		lists, reads int // of Secrets
		all          int
	}{
		{"install", version(0), helm.ActionInstall, 1, 0, 14},
		{"idle", version(0), helm.ActionNone, 1, 0, 1},
		{"upgrade", version(1), helm.ActionUpgrade, 1, 1, 14},
		{"upgrade again", version(2), helm.ActionUpgrade, 1, 1, 14},
	} {
		r.want(test.action, test.chart, "")

		lists, reads, all := c.take()
		t.Logf("%s: %d lists and %d reads of Secrets in %d requests:\n%s", test.name, lists, reads, len(all), strings.Join(all, "\n"))

		if lists > test.lists || reads > test.reads || len(all) > test.all {
			t.Errorf("%s: %d lists and %d reads of Secrets in %d requests, want %d, %d and %d at most", test.name, lists, reads, len(all), test.lists, test.reads, test.all)
		}
	}
}

// kindSet is a set of kinds for tests of one goroutine.
type kindSet map[schema.GroupVersionKind]bool

// Has implements kubeclient.Kinds.
func (s kindSet) Has(kind schema.GroupVersionKind) bool { return s[kind] }

// Add implements kubeclient.Kinds.
func (s kindSet) Add(kind schema.GroupVersionKind) { s[kind] = true }

// Whether the API server validates the fields of a kind is asked once for all actions, and it validates them every time.
func TestOpenAPIIsReadOncePerKind(t *testing.T) {
	var c requests

	r := newRelease(t)
	r.client = helm.New(helm.Target{
		Config: c.counted(cluster.RESTConfig()), Name: "demo", Namespace: r.namespace, Renderers: renderers, Validated: kindSet{},
	}, logr.Discard(), 5*time.Second)

	r.want(helm.ActionInstall, chartserver.ConfigMapChart("demo", "1.0.0"), "")

	if count := c.takeOpenAPI(); count == 0 {
		t.Error("the first action did not read the OpenAPI document")
	}

	r.want(helm.ActionUpgrade, chartserver.ConfigMapChart("demo", "1.0.1"), "")

	if count := c.takeOpenAPI(); count != 0 {
		t.Errorf("the second action read OpenAPI documents %d times", count)
	}

	unknown := chartOf("1.0.2", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\nunknown: field\n")
	r.wantError(helm.ActionUpgrade, unknown, "", helm.ReasonFailed, ".unknown: field not declared")
}

// takeOpenAPI returns how many OpenAPI documents of groups were read since the last take.
func (c *requests) takeOpenAPI() int {
	_, _, all := c.take()

	return len(slices.DeleteFunc(all, func(request string) bool { return !strings.HasPrefix(request, "GET /openapi/v3/") }))
}
