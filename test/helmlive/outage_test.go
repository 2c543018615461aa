package helmlive

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// outage is a cluster that answers 503 to one method on one object while it lasts.
type outage struct {
	mu             sync.Mutex
	method, object string // object is the end of the path
	answered       int    // how many more of these requests are answered
}

func (o *outage) begin(method, object string) { o.beginAfter(0, method, object) }

// beginAfter begins when so many requests were answered.
func (o *outage) beginAfter(answered int, method, object string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.method, o.object, o.answered = method, object, answered
}

func (o *outage) end() { o.begin("", "") }

func (o *outage) hits(request *http.Request) bool {
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.method != request.Method || !strings.HasSuffix(request.URL.Path, o.object) {
		return false
	}

	o.answered--

	return o.answered < 0
}

// of makes a configuration whose requests have the outage.
func (o *outage) of(config *rest.Config) *rest.Config {
	copied := rest.CopyConfig(config)
	copied.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if !o.hits(request) {
				return next.RoundTrip(request)
			}

			return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: io.NopCloser(strings.NewReader("no")), Request: request}, nil
		})
	})

	return copied
}

// After a rollback that failed, the revision that it left is no good one: nothing goes back to it.
func TestAFailedRollbackIsTriedAgain(t *testing.T) {
	var o outage

	r := newReleaseFor(t, o.of(cluster.RESTConfig()))
	r.wanted.RollBack = true
	r.want(helm.ActionInstall, chartserver.ConfigMapChart("demo", "1.0.0"), "")
	r.wantError(helm.ActionUpgrade, refused("2.0.0"), "", helm.ReasonFailed, "Not-Valid")

	o.begin(http.MethodPatch, "/configmaps/demo")
	r.wantError(helm.ActionRollback, refused("2.0.0"), "", helm.ReasonFailed)
	o.end()

	if diff := cmp.Diff([]string{"3 failed", "2 failed", "1 deployed"}, r.numbers()); diff != "" {
		t.Error(diff)
	}

	r.want(helm.ActionRollback, refused("2.0.0"), "")

	if got := r.configMap("demo").Data["chart"]; got != "1.0.0" {
		t.Errorf("the chart in effect is %s", got)
	}
}
