package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &goAwaySender{hold: make(chan struct{}), goAway: make(chan struct{})}
		handler := d.wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		begin := time.Now()

		go d.begin(5*time.Second, 300*time.Millisecond)

		for _, tc := range []struct {
			name       string
			after      time.Duration // from the begin
			path       string
			wantAfter  time.Duration
			wantHeader string
		}{
			{"not noticed yet", 4 * time.Second, "/apis", 4 * time.Second, ""},
			{"held back", 5100 * time.Millisecond, "/apis", 5300 * time.Millisecond, "close"},
			{"later", 6 * time.Second, "/apis", 6 * time.Second, "close"},
			{"health", 6100 * time.Millisecond, "/readyz", 6100 * time.Millisecond, ""},
		} {
			time.Sleep(tc.after - time.Since(begin))

			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, tc.path, nil))

			if got := recorder.Header().Get("Connection"); got != tc.wantHeader {
				t.Errorf("%s: Connection %q, want %q", tc.name, got, tc.wantHeader)
			}

			if got := time.Since(begin); got != tc.wantAfter {
				t.Errorf("%s: answered after %s, want %s", tc.name, got, tc.wantAfter)
			}
		}
	})
}

func TestDrainEndsWithTheClient(t *testing.T) {
	d := &goAwaySender{hold: make(chan struct{}), goAway: make(chan struct{})}
	close(d.hold)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	served := false
	d.wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = true })).
		ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/apis", nil))

	if !served {
		t.Error("a request whose client has gone has to get to what counts it")
	}
}
