package apiserver_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// unread marks the requests whose answers are not read.
const unread = "Unread"

// unreadAnswer is what a client leaves of a connection that it does not read: a write does not return.
type unreadAnswer struct {
	http.ResponseWriter

	begin   func()
	blocked <-chan struct{}
}

func (u *unreadAnswer) Unwrap() http.ResponseWriter { return u.ResponseWriter }

func (u *unreadAnswer) Write(text []byte) (int, error) {
	u.begin()
	<-u.blocked

	return u.ResponseWriter.Write(text)
}

// deepPatch is a merge patch that takes much memory to apply, and changes nothing: the kind has no such field.
func deepPatch(levels int) string { return `{"spec":{"nothing":` + deepValue(levels) + "}}" }

// deepValue is about as long as the body of a request may be. It is for a server withSmallBodies.
func deepValue(levels int) string {
	return strings.Repeat(`{"a":`, levels) + `"` + strings.Repeat("x", foreigntest.Load(900<<10)) + `"` + strings.Repeat("}", levels)
}

// TestUnreadAnswerHoldsNothing: a request that took the whole budget keeps nobody waiting once its work is done, also if
// nobody reads its answer.
func TestUnreadAnswerHoldsNothing(t *testing.T) {
	begun, blocked := make(chan struct{}), make(chan struct{})

	s := startServer(t, withSmallBodies(), withConfig(func(config *apiserver.Config) {
		generic := &config.Generic.Config
		build, begin := generic.BuildHandlerChainFunc, sync.OnceFunc(func() { close(begun) })

		generic.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
			next := build(handler, c)

			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get(unread) != "" {
					w = responsewriter.WrapForHTTP1Or2(&unreadAnswer{ResponseWriter: w, begin: begin, blocked: blocked})
				}

				next.ServeHTTP(w, r)
			})
		}
	}))
	s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, jsonBody, clusterJSON("deep"))

	request := s.mergePatch(t.Context(), t, deepPatch(140))
	request.Header.Set(unread, "yes")

	var sending sync.WaitGroup
	defer sending.Wait()
	defer close(blocked)

	sending.Go(func() {
		if status, answer := s.do(t, request); status != http.StatusOK {
			t.Errorf("status %d: %.300s", status, answer)
		}
	})

	<-begun

	s.mustCall(t, http.StatusOK, http.MethodPatch, clusters+"/deep", mergeBody, `{"metadata":{"labels":{"a":"b"}}}`)
}

// TestAbandonedPatchesAreBounded: the library goes on with a patch whose client has gone, and the patch keeps its part of the
// budget for so long.
func TestAbandonedPatchesAreBounded(t *testing.T) {
	// clientTimeout is less than a patch takes, and more than it takes to send it.
	clientTimeout := time.Duration(foreigntest.Load(int(700 * time.Millisecond)))

	s := startServer(t, withSmallBodies())
	s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, jsonBody, clusterJSON("deep"))

	patch := deepPatch(90)

	// What one of them takes, and twice as much before garbage is collected: as for those that are waited for.
	foreigntest.WantPeak(t, 400<<20, func() {
		for range foreigntest.AtOnce(8) {
			ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
			if response, err := http.DefaultClient.Do(s.mergePatch(ctx, t, patch)); err == nil {
				_ = response.Body.Close()
			}

			cancel()
		}

		// The last one begins when there is room for it, which is after all others.
		for again := true; again; {
			switch status, answer := s.do(t, s.mergePatch(t.Context(), t, patch)); status {
			case http.StatusOK:
				again = false
			case http.StatusTooManyRequests, http.StatusGatewayTimeout: // on a slow machine
			default:
				t.Fatalf("status %d: %.300s", status, answer)
			}
		}
	})
}

// mergePatch is a request that lasts as long as the context.
func (s *server) mergePatch(ctx context.Context, t *testing.T, patch string) *http.Request {
	t.Helper()

	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, s.url+clusters+"/deep", strings.NewReader(patch))
	if err != nil {
		t.Fatal(err)
	}

	request.Header.Set("Content-Type", mergeBody)

	return request
}
