package omnisecretsync

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
)

// serve is a whole API server: the store, and what tells which cluster it is.
func (m *mover) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")

	switch r.URL.Path {
	case "/version":
		fmt.Fprint(w, `{"gitVersion":"v1.37.1"}`)
	case "/api/v1/namespaces/kube-system":
		fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u-1"}}`)
	default:
		m.store.ServeHTTP(w, r)
	}
}

// delete is the deletion through the real access. The kubeconfig may be nil.
func (m *mover) delete(ctx context.Context, kubeconfig []byte) (loop.Outcome, error) {
	m.Helper()

	parent := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: m.sync.Namespace, Name: "demo"}}
	export := &v1alpha1.OmniKubeconfigExport{ObjectMeta: metav1.ObjectMeta{Namespace: m.sync.Namespace, Name: "export"}}
	export.Spec.TargetSecretRef.Name = "access"
	builder := looptest.NewAPI(parent, export)

	if kubeconfig != nil {
		builder.WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.sync.Namespace, Name: "access"}, Data: map[string][]byte{"kubeconfig": kubeconfig}})
	}

	api := builder.Build()
	m.r.options.Access = &clusteraccess.Access{Clusters: clusteraccess.NewClusters(m.r.options.Now, loopback()), Client: api, Live: api, HubID: thisHub}
	m.sync.Spec.ClusterRef.Name, m.sync.Spec.KubeconfigSecretRef.Name = "demo", "access"

	for {
		s := &scope{sync: m.sync}
		outcome, err := m.r.delete(ctx, s)
		s.opened.Done()

		if err != nil || !strings.Contains(outcome.Message(), "waiting for the workload cluster") {
			return outcome, err
		}

		time.Sleep(10 * time.Millisecond)
	}
}

// The API's storage was restored from before the first write was recorded, or the status was wiped: the deletion looks where
// the spec wants the Secret, and takes what bears the mark. It waits for no cluster, because most often nothing is there.
func TestADeletionDoesNotBelieveALostStatus(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*mover)
		stays  bool   // the Secret
		event  string // the start of the only one; empty: none
	}{
		"written":               {func(*mover) {}, false, "Normal Deleted Deleted Secret apps/a"},
		"written, then orphan":  {func(m *mover) { m.sync.Spec.DeletionPolicy = v1alpha1.DeletionOrphan }, true, ""},
		"never written":         {func(m *mover) { delete(m.store.secrets, "apps/a") }, true, ""},
		"without a mark":        {func(m *mover) { delete(m.store.secrets["apps/a"].Labels, labelOwnerUID) }, true, ""},
		"another object's":      {func(m *mover) { m.store.secrets["apps/a"].Labels[labelOwnerUID] = "another" }, true, ""},
		"another hub's":         {func(m *mover) { m.store.secrets["apps/a"].Labels[labelHub] = "hub-2" }, true, "Warning LeftBehind Secret apps/a stays"},
		"it may not be read":    {func(m *mover) { m.store.forbidden = "apps" }, true, "Warning LeftBehind Secret apps/a may be left in the workload cluster of OmniCluster \"demo\": "},
		"a gateway finds none":  {func(m *mover) { m.store.routeless = byMethod(http.MethodGet) }, true, "Warning LeftBehind Secret apps/a may be left in the workload cluster of OmniCluster \"demo\": "},
		"it cannot be read now": {func(m *mover) { m.store.dead = true }, true, "Warning LeftBehind Secret apps/a may be left in the workload cluster of OmniCluster \"demo\": "},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMover(t)
			m.to("apps", "a")
			m.settle()
			m.sync.Status = v1alpha1.OmniSecretSyncStatus{}
			test.change(m)

			before := m.store.names()
			m.all()

			if outcome, err := m.delete(t.Context(), kubeconfigFor(t, m.serve)); err != nil || !outcome.Continues() {
				t.Fatalf("%+v, %v", outcome, err)
			}

			if got := m.store.names(); test.stays && got != before || !test.stays && got != "" {
				t.Errorf("the cluster has %q", got)
			}

			if told := m.all(); (told == "") != (test.event == "") || !strings.HasPrefix(told, test.event) {
				t.Errorf("events: %s", told)
			}
		})
	}
}

// What was found with the mark is there: who may not remove it now may do so later.
func TestADeletionTriesAgainToRemoveWhatItFound(t *testing.T) {
	m := newMover(t)
	m.to("apps", "a")
	m.settle()
	m.sync.Status = v1alpha1.OmniSecretSyncStatus{}
	m.store.looked = func(string) { m.store.forbidden = "apps" }
	m.all()

	if outcome, err := m.delete(t.Context(), kubeconfigFor(t, m.serve)); err != nil || !outcome.Blocks() || m.all() != "" {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// Where the cluster cannot be opened, the object goes at once, and an event tells of what may be there. Without a Secret with a
// kubeconfig nothing was ever written.
func TestADeletionWithoutAStatusWaitsForNoCluster(t *testing.T) {
	for name, test := range map[string]struct {
		kubeconfig func(*testing.T) []byte
		event      string
	}{
		"no kubeconfig yet": {func(*testing.T) []byte { return nil }, ""},
		"no kubeconfig": {func(*testing.T) []byte { return []byte("none") }, `Warning LeftBehind Secret apps/a may be left in the workload cluster of OmniCluster "demo": ` +
			`the status records no write, and the cluster could not be looked at: `},
		"an unreachable cluster": {func(t *testing.T) []byte {
			t.Helper()

			return kubeconfigFor(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
		}, "Warning LeftBehind Secret apps/a may be left"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMover(t)
			m.to("apps", "a")

			if outcome, err := m.delete(t.Context(), test.kubeconfig(t)); err != nil || !outcome.Continues() {
				t.Fatalf("%+v, %v", outcome, err)
			}

			if told := m.all(); (told == "") != (test.event == "") || !strings.HasPrefix(told, test.event) {
				t.Errorf("events: %s", told)
			}
		})
	}
}

// A process that stops has learned nothing of the cluster.
func TestAStopDoesNotLetGo(t *testing.T) {
	m := newMover(t)
	m.to("apps", "a")

	stopped, stop := context.WithCancel(t.Context())
	kubeconfig := kubeconfigFor(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/secrets/a") {
			stop()
			<-r.Context().Done()

			return
		}

		m.serve(w, r)
	})

	if outcome, err := m.delete(stopped, kubeconfig); err == nil || m.all() != "" {
		t.Errorf("%+v, %v", outcome, err)
	}

	// Before the cluster has answered.
	if outcome, err := m.delete(stopped, kubeconfig); err == nil || m.all() != "" {
		t.Errorf("%+v, %v", outcome, err)
	}
}
