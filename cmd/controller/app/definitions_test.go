package app

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// watchHub runs a definitionsWatch until it ends by itself, or the hub has answered enough requests.
func watchHub(t *testing.T, h *fakeHub) error {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	h.stop = cancel

	server := httptest.NewServer(h)
	t.Cleanup(server.Close)

	watch, err := newDefinitionsWatch(&rest.Config{Host: server.URL, QPS: requestsPerSecond, Burst: requestBurst})
	if err != nil {
		t.Fatal(err)
	}

	if watch.interval != 20*time.Second || watch.NeedLeaderElection() {
		t.Errorf("looks every %s, only as the leader: %t", watch.interval, watch.NeedLeaderElection())
	}

	watch.interval = time.Millisecond

	return watch.Start(ctx)
}

// Definitions that are created while the controller runs end it, with an error that says what to do.
func TestStopsBesideDefinitions(t *testing.T) {
	err := watchHub(t, &fakeHub{definitions: map[string]int{"omniworkers.omni.texashpc.com": http.StatusOK}})
	if !errors.Is(err, errDefinitions) {
		t.Fatal(err)
	}

	for _, text := range []string{"omni-controller stops", "omniworkers.omni.texashpc.com", "finalizers", "docs/how-to/migrate.md"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
}

// Without a collision, and while requests fail, the controller runs on; after errors it still notices definitions.
func TestRunsOnWithoutDefinitions(t *testing.T) {
	for name, h := range map[string]*fakeHub{
		"none":                 {},
		"may not look":         {definitions: map[string]int{"omniclusters.omni.texashpc.com": http.StatusForbidden}},
		"the hub does not say": {unavailable: 1 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			h.enough = int32(len(kinds())) + 1 // one look is at most a call for each kind

			if err := watchHub(t, h); err != nil {
				t.Error(err)
			}

			if h.calls.Load() < h.enough {
				t.Errorf("%d calls", h.calls.Load())
			}
		})
	}

	err := watchHub(t, &fakeHub{unavailable: 2, definitions: map[string]int{"omniclusters.omni.texashpc.com": http.StatusOK}})
	if !errors.Is(err, errDefinitions) {
		t.Errorf("after two failures: %v", err)
	}
}

func TestFindDefinitions(t *testing.T) {
	h := &fakeHub{definitions: map[string]int{
		"omnimachines.omni.texashpc.com":    http.StatusOK,
		"omniconnections.omni.texashpc.com": http.StatusOK,
	}}

	server := httptest.NewServer(h)
	t.Cleanup(server.Close)

	checks, err := newStartChecks(&rest.Config{Host: server.URL, QPS: requestsPerSecond, Burst: requestBurst}, kinds(), "")
	if err != nil {
		t.Fatal(err)
	}

	found, err := checks.findDefinitions(t.Context())
	if err != nil || strings.Join(found, " ") != "omniconnections.omni.texashpc.com omnimachines.omni.texashpc.com" {
		t.Errorf("%v, %v", found, err)
	}
}
