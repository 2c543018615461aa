package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// An answer that its client does not read ends with its deadline, and no other answer does: kube-apiserver sends all its
// requests over one connection of HTTP/2.
func TestAnswerDeadline(t *testing.T) {
	const timeout = 500 * time.Millisecond

	for name, http2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			endless := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/endless" {
					return
				}

				chunk, err := make([]byte, 1<<20), error(nil)
				for err == nil {
					_, err = w.Write(chunk)
				}

				ended <- err
			})

			server := httptest.NewUnstartedServer(withAnswerDeadline(endless, func(*http.Request) bool { return true }, timeout))
			server.EnableHTTP2 = http2
			server.StartTLS()
			t.Cleanup(server.Close)

			ask := func(path string) *http.Response {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
				if err != nil {
					t.Fatal(err)
				}

				response, err := server.Client().Do(request)
				if err != nil {
					t.Fatal(err)
				}

				t.Cleanup(func() { _ = response.Body.Close() })

				return response
			}

			if first := ask("/"); first.ProtoAtLeast(2, 0) != http2 || first.Body.Close() != nil {
				t.Fatal(first.Proto)
			}

			ask("/endless") // and reads nothing

			await.Receive(t, "the end of the answer", ended)

			time.Sleep(2 * timeout) // the deadline of the first request is long over

			if again := ask("/"); again.StatusCode != http.StatusOK {
				t.Error(again.Status)
			}
		})
	}
}
