package clusteraccess

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
)

// keyGone is the answer of Omni's proxy to a token whose key was deleted. It quotes the token, which the real one does not.
const keyGone = `token is unverifiable: error while executing keyfunc: key not found, ID "1" s3cret-token`

func TestLook(t *testing.T) {
	for _, test := range []struct {
		name, body string
		code       int
		keyDeleted bool
		reason     string // empty: it answers
	}{
		{"answered", `{}`, http.StatusOK, false, ""},
		{"key deleted", keyGone, http.StatusUnauthorized, true, v1alpha1.ReasonUnauthenticated},
		{"refused otherwise", "groups is empty", http.StatusUnauthorized, false, v1alpha1.ReasonUnauthenticated},
		{"refused by Kubernetes", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401,"message":"key not found"}`,
			http.StatusUnauthorized, false, v1alpha1.ReasonUnauthenticated},
		{"the words in another answer", "key not found", http.StatusBadGateway, false, v1alpha1.ReasonClusterUnreachable},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked atomic.Int32

			config := serve(t, func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)

				if strings.HasPrefix(test.body, "{") {
					w.Header().Set("Content-Type", "application/json")
				}

				w.WriteHeader(test.code)
				_, _ = w.Write([]byte(test.body))
			})

			err := Look(t.Context(), config, loopback())
			if KeyDeleted(err) != test.keyDeleted || (err != nil) != (test.reason != "") || err != nil && Reason(err) != test.reason || asked.Load() != 1 {
				t.Errorf("%v (%s), after %d requests", err, Reason(err), asked.Load())
			}

			if err != nil && strings.Contains(err.Error()+SaidBy(err), "s3cret") {
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}

	var forbidden *dialguard.ForbiddenError
	if err := Look(t.Context(), serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }), dialguard.Guard{}); !errors.As(err, &forbidden) {
		t.Errorf("to an address that is not allowed: %v", err)
	}
}

// Every 401, whoever asked, is told with the name of the Secret, and the next reconcile asks the cluster again.
func TestRefusalIsTold(t *testing.T) {
	var refuses atomic.Bool

	config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case refuses.Load():
			http.Error(w, keyGone, http.StatusUnauthorized)
		case r.URL.Path == "/version":
			respond(w, http.StatusOK, `{"gitVersion":"v1.37.1"}`)
		default:
			respond(w, http.StatusOK, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u-1"}}`)
		}
	})

	var told []types.NamespacedName

	clusters := NewClusters(nil, loopback())
	clusters.Refused = func(secret types.NamespacedName) { told = append(told, secret) }
	cluster := get(t, clusters, config)

	if _, err := identifyFinally(t, cluster); err != nil || len(told) != 0 {
		t.Fatalf("told %v, %v", told, err)
	}

	refuses.Store(true)

	_, err := cluster.Core().Secrets("ns").Get(t.Context(), "any", metav1.GetOptions{})
	if !KeyDeleted(err) || len(told) != 1 || told[0] != key().NamespacedName {
		t.Errorf("told %v, %v", told, err)
	}

	if message := cluster.Message(err); !strings.Contains(message, "Omni does not know the key any more") || strings.Contains(message, "s3cret") {
		t.Errorf("message %q", message)
	}

	if _, err := identifyFinally(t, cluster); !KeyDeleted(err) || len(told) != 2 {
		t.Errorf("told %v, %v", told, err)
	}
}
