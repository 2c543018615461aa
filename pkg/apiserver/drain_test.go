package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestFarewell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &farewell{gather: make(chan struct{}), leave: make(chan struct{})}
		handler := f.wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		begin := time.Now()

		go f.begin(5*time.Second, 300*time.Millisecond)

		for _, tc := range []struct {
			name         string
			after        time.Duration // from the begin
			path         string
			wantAfter    time.Duration
			wantFarewell string
		}{
			{"not noticed yet", 4 * time.Second, "/apis", 4 * time.Second, ""},
			{"held back", 5100 * time.Millisecond, "/apis", 5300 * time.Millisecond, "close"},
			{"later", 6 * time.Second, "/apis", 6 * time.Second, "close"},
			{"health", 6100 * time.Millisecond, "/readyz", 6100 * time.Millisecond, ""},
		} {
			time.Sleep(tc.after - time.Since(begin))

			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, tc.path, nil))

			if got := recorder.Header().Get("Connection"); got != tc.wantFarewell {
				t.Errorf("%s: Connection %q, want %q", tc.name, got, tc.wantFarewell)
			}

			if got := time.Since(begin); got != tc.wantAfter {
				t.Errorf("%s: answered after %s, want %s", tc.name, got, tc.wantAfter)
			}
		}
	})
}

func TestFarewellEndsWithTheClient(t *testing.T) {
	f := &farewell{gather: make(chan struct{}), leave: make(chan struct{})}
	close(f.gather)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	served := false
	f.wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = true })).
		ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/apis", nil))

	if !served {
		t.Error("a request whose client has gone has to get to what counts it")
	}
}
