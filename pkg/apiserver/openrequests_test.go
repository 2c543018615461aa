package apiserver

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
)

func TestEndWith(t *testing.T) {
	said, logger := newLog()

	synctest.Test(t, func(t *testing.T) {
		over, end := context.WithCancelCause(t.Context())
		took := make(chan time.Duration, 2)
		begin := time.Now()

		handler := endWith(over, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				<-r.Context().Done()

				if cause := context.Cause(r.Context()); !errors.Is(cause, errStopping) {
					t.Errorf("it ended because of %v", cause)
				}
			}

			took <- time.Since(begin)
		}))

		serve := func(path string) {
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(klog.NewContext(t.Context(), logger), http.MethodPost, path, nil))
		}

		serve("/quick")

		if got := <-took; got != 0 {
			t.Errorf("the quick one took %s", got)
		}

		time.AfterFunc(time.Minute, func() { end(errStopping) })
		serve("/slow")

		if got := <-took; got != time.Minute {
			t.Errorf("the slow one took %s", got)
		}
	})

	if got := said.String(); !strings.Contains(got, "held up the stop") || !strings.Contains(got, `path="/slow"`) || strings.Contains(got, "/quick") {
		t.Errorf("log: %s", got)
	}
}
