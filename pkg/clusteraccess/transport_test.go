package clusteraccess

import (
	"net/http"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// TestRetryAfterIsShort: clients wait for what a refusal says before they ask again, up to ten times, and Helm's requests
// have no context that would end the wait.
func TestRetryAfterIsShort(t *testing.T) {
	for said, code := range map[string]int{
		"1":                             http.StatusTooManyRequests,
		"86400":                         http.StatusInternalServerError,
		"9223372036854775807":           http.StatusServiceUnavailable,
		"Wed, 21 Oct 2099 07:28:00 GMT": http.StatusTooManyRequests,
	} {
		t.Run(said, func(t *testing.T) {
			var asked atomic.Int32

			cluster := get(t, NewClusters(nil, loopback()), serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) > 1 {
					respond(w, http.StatusOK, `{"kind":"Secret","apiVersion":"v1"}`)

					return
				}

				w.Header().Set("Retry-After", said)
				respond(w, code, `{"kind":"Status","apiVersion":"v1","status":"Failure"}`)
			}))

			if _, err := cluster.Core().Secrets("apps").Get(await.Context(t), "pull", metav1.GetOptions{}); err != nil || asked.Load() != 2 {
				t.Errorf("%v, after it was asked %d times", err, asked.Load())
			}
		})
	}
}

// TestNoRetryWithoutRetryAfter: an answer without the header is no reason to ask again.
func TestNoRetryWithoutRetryAfter(t *testing.T) {
	var asked atomic.Int32

	cluster := get(t, NewClusters(nil, loopback()), serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		respond(w, http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure"}`)
	}))

	if _, err := cluster.Core().Secrets("apps").Get(t.Context(), "pull", metav1.GetOptions{}); err == nil || asked.Load() != 1 {
		t.Errorf("%v, after it was asked %d times", err, asked.Load())
	}
}
