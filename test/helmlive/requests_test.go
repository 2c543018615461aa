package helmlive

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

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
		{"install", version(0), helm.ActionInstall, 1, 0, 12},
		{"idle", version(0), helm.ActionNone, 1, 0, 1},
		{"upgrade", version(1), helm.ActionUpgrade, 1, 1, 12},
		{"upgrade again", version(2), helm.ActionUpgrade, 1, 1, 12},
	} {
		r.want(test.action, test.chart, "")

		lists, reads, all := c.take()
		t.Logf("%s: %d lists and %d reads of Secrets in %d requests:\n%s", test.name, lists, reads, len(all), strings.Join(all, "\n"))

		if lists > test.lists || reads > test.reads || len(all) > test.all {
			t.Errorf("%s: %d lists and %d reads of Secrets in %d requests, want %d, %d and %d at most", test.name, lists, reads, len(all), test.lists, test.reads, test.all)
		}
	}
}

// The API server validates fields in each write. No OpenAPI document is read for that, which costs more than the rest of an action.
func TestNoOpenAPIIsRead(t *testing.T) {
	var c requests

	r := newReleaseFor(t, c.counted(cluster.RESTConfig()))
	r.want(helm.ActionInstall, chartserver.ConfigMapChart("demo", "1.0.0"), "")

	unknown := chartOf("1.0.1", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\nunknown: field\n")
	r.wantError(helm.ActionUpgrade, unknown, "", helm.ReasonFailed, ".unknown: field not declared")

	_, _, all := c.take()
	for _, request := range all {
		if strings.Contains(request, "/openapi/") {
			t.Error(request)
		}
	}
}
