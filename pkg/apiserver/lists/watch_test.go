package lists

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
)

// A watch whose client does not read its beginning ends with the deadline. One whose beginning is read goes on, and gives back at
// once what it held. Priority and fairness, which waits for the same signal, gets it.
func TestBeginningOfAWatch(t *testing.T) {
	const timeout = 500 * time.Millisecond

	for name, http2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			fairness := utilflowcontrol.NewInitializationSignal()
			ended, over := make(chan error, 1), atomic.Int32{}

			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r = r.WithContext(utilflowcontrol.WithInitializationSignal(r.Context(), fairness))

				r, end := begin(w, r, timeout, func() { over.Add(1) })
				defer end()

				var err error

				switch r.URL.Path {
				case "/unread":
					for chunk := make([]byte, 1<<20); err == nil; {
						_, err = w.Write(chunk)
					}
				case "/read":
					utilflowcontrol.WatchInitialized(r.Context())

					if over.Load() != 1 {
						t.Error("it still holds what it held")
					}

					time.Sleep(2 * timeout)

					_, err = w.Write([]byte("an event"))
				}

				ended <- err
			}))
			server.EnableHTTP2 = http2
			server.StartTLS()
			t.Cleanup(server.Close)

			for _, test := range []struct {
				path  string
				fails bool
			}{{"/read", false}, {"/unread", true}, {"/read", false}} {
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

				if over.Load() != 1 {
					t.Errorf("%s: over %d times", test.path, over.Load())
				}
			}

			fairness.Wait()
		})
	}
}
