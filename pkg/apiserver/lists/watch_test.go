package lists

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
)

// A watch whose client does not read ends, before its beginning was sent and after it. One whose client reads goes on, also when
// nothing happens for long, and gives back what it held as soon as the beginning is read. Priority and fairness, which waits for the
// same signal, gets it.
func TestWatchesThatNobodyReads(t *testing.T) {
	const timeout = 500 * time.Millisecond

	endlessly := func(w http.ResponseWriter) (err error) {
		for chunk := make([]byte, 1<<20); err == nil; {
			_, err = w.Write(chunk)
		}

		return err
	}

	for name, http2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			fairness := utilflowcontrol.NewInitializationSignal()
			ended, over := make(chan error, 1), atomic.Int32{}

			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r = r.WithContext(utilflowcontrol.WithInitializationSignal(r.Context(), fairness))

				w, r, end := watching(w, r, timeout, func() { over.Add(1) })
				defer end()

				w.(http.Flusher).Flush()

				var err error

				switch r.URL.Path {
				case "/unread":
					err = endlessly(w)
				case "/unread after the signal":
					utilflowcontrol.WatchInitialized(r.Context())

					err = endlessly(w)
				case "/read":
					utilflowcontrol.WatchInitialized(r.Context())

					for range 3 {
						time.Sleep(2 * timeout)

						_, err = w.Write([]byte("an event"))
						w.(http.Flusher).Flush()
					}
				}

				if held := over.Load() == 0; held != (r.URL.Path != "/read") {
					t.Errorf("%s: held to the end: %t", r.URL.Path, held)
				}

				ended <- err
			}))
			server.EnableHTTP2 = http2
			server.StartTLS()
			t.Cleanup(server.Close)

			for _, test := range []struct {
				path  string
				fails bool
			}{{"/read", false}, {"/unread", true}, {"/unread%20after%20the%20signal", true}, {"/read", false}} {
				over.Store(0)

				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+test.path, nil)
				if err != nil {
					t.Fatal(err)
				}

				response, err := server.Client().Do(request)
				if err != nil {
					t.Fatal(err)
				}

				select {
				case err := <-ended:
					if (err != nil) != test.fails || response.ProtoAtLeast(2, 0) != http2 {
						t.Errorf("%s over %s: %v", test.path, response.Proto, err)
					}
				case <-time.After(time.Minute):
					t.Fatalf("%s goes on", test.path)
				}

				_ = response.Body.Close()

				for over.Load() == 0 {
					time.Sleep(time.Millisecond) // the handler is about to return
				}
			}

			fairness.Wait()
		})
	}
}
