package helm

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/release/common"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/answer"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// A release with maxHistory: 0 keeps hundreds of revisions, 100 MiB here. An action reads the few that it needs, and the
// first one with a lower maxHistory, or an uninstallation, reads and deletes the others one by one.
func TestHundredsOfRevisions(t *testing.T) {
	foreigntest.Sequential(t)

	const revisions = 200

	var reads atomic.Int32

	cluster := newFakeCluster(t)
	cluster.before = func(request *http.Request) {
		if request.Method == http.MethodGet && strings.Contains(request.URL.Path, "/secrets/") {
			reads.Add(1)
		}
	}

	for version := 1; version <= revisions; version++ {
		status := common.StatusSuperseded
		if version == revisions {
			status = common.StatusDeployed
		}

		cluster.add(t, applied(version, status, object("a"), map[string]any{"large": strings.Repeat(fmt.Sprintf("%8d", version), 64<<10)}))
	}

	c := New(Target{Config: cluster.config(), Name: "demo", Namespace: "apps"}, logr.Discard(), time.Second)

	for _, step := range []struct {
		action            Action
		maxHistory        int
		maxReads, revised int
	}{
		{ActionRollback, 0, 5, revisions + 1},
		{ActionRollback, 10, revisions + 5, 10},
		{ActionUninstall, 10, 20, 0},
	} {
		reads.Store(0)

		foreigntest.WantPeak(t, 32<<20, func() {
			if err := c.Run(t.Context(), Request{
				Decision: Decision{Action: step.action, Revision: revisions - 1}, Settings: Settings{Timeout: time.Minute, MaxHistory: step.maxHistory},
			}); err != nil {
				t.Errorf("%s: %v", step.action, err)
			}
		})

		observed, err := c.Observe(t.Context())
		if err != nil || len(observed.Revisions) != step.revised {
			t.Errorf("%s, at most %d: %d revisions, want %d, %v", step.action, step.maxHistory, len(observed.Revisions), step.revised, err)
		}

		if got := int(reads.Load()); got > step.maxReads {
			t.Errorf("%s, at most %d: %d records were read, want at most %d", step.action, step.maxHistory, got, step.maxReads)
		}

		wantNothingHeld(t)
	}
}

// boundedLists are answers that are too large to be read, as the transport of a workload cluster refuses them.
type boundedLists struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedLists) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err == nil && strings.HasSuffix(request.URL.Path, "/secrets") {
		response.Body = answer.NewReader(request.Context(), response.Body, answer.Limits{Bytes: 1 << 10, Memory: 1 << 20, Small: 1 << 20}, nil)
	}

	return response, err
}

// Of thousands of revisions even the list is too large: what is said names the records, and the way out.
func TestMoreRevisionsThanAreListed(t *testing.T) {
	cluster := newFakeCluster(t)
	for version := 1; version <= 20; version++ {
		cluster.add(t, applied(version, common.StatusSuperseded, object("a"), nil))
	}

	config := cluster.config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return boundedLists{next} })

	_, err := New(Target{Config: config, Name: "demo", Namespace: "apps"}, logr.Discard(), time.Second).Observe(t.Context())

	var failure *Error
	if !errors.As(err, &failure) || failure.Reason != ReasonRecord {
		t.Fatalf("got %v", err)
	}

	for _, want := range []string{"more than 1 KiB", "kubectl delete secrets --namespace apps --selector owner=helm,name=demo,status=superseded", "spec.maxHistory"} {
		if !strings.Contains(failure.Message, want) {
			t.Errorf("no %q in %s", want, failure.Message)
		}
	}
}
