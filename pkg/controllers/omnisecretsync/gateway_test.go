package omnisecretsync

import (
	"net/http"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// byMethod is a gateway that has no route for requests of a method.
func byMethod(method string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == method }
}

// TestAGatewaysNotFoundIsNoAnswer: a gateway before the API answers 404 to everything while it has no route. That says nothing
// about a Secret, nor about a namespace.
func TestAGatewaysNotFoundIsNoAnswer(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		t.Run("a deletion: "+method, func(t *testing.T) {
			m := newMover(t)
			m.to("apps", "a")
			m.settle()
			m.store.routeless = byMethod(method)

			outcome, err := m.r.cleanUp(t.Context(), &scope{sync: m.sync, opened: m.opened()}, m.cluster)
			if err != nil || !outcome.Blocks() || outcome.Reason() != v1alpha1.ReasonClusterUnreachable {
				t.Errorf("%s: %s, %v", outcome.Reason(), outcome.Message(), err)
			}

			m.store.routeless = nil

			if m.remove(); m.store.names() != "" {
				t.Errorf("the cluster has %s", m.store.names())
			}
		})

		t.Run("another target: "+method, func(t *testing.T) {
			m := newMover(t)
			m.to("apps", "a")
			m.settle()
			m.to("apps", "b")
			m.run()
			m.store.routeless = func(r *http.Request) bool { return r.Method == method && strings.HasSuffix(r.URL.Path, "/a") }

			if outcome := m.run(); outcome.Reason() != v1alpha1.ReasonClusterUnreachable || outcome.Stalls() {
				t.Errorf("%s: %s", outcome.Reason(), outcome.Message())
			}

			m.store.routeless = nil

			if m.settle(); m.store.names() != "apps/b" {
				t.Errorf("the cluster has %s", m.store.names())
			}
		})
	}

	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
		t.Run("a write: "+method, func(t *testing.T) {
			m := newMover(t)
			m.sync.Spec.CreateNamespace = true
			m.to("apps", "a")

			if method == http.MethodPut {
				m.settle()
				m.store.secrets["apps/a"].Data = nil
				m.sync.Status.LastSyncTime = nil // long ago
			} else {
				m.run()
			}

			m.store.routeless, m.store.missing = byMethod(method), "none"

			if outcome := m.run(); outcome.Reason() != v1alpha1.ReasonClusterUnreachable || outcome.Stalls() {
				t.Errorf("%s: %s", outcome.Reason(), outcome.Message())
			}
		})
	}
}
