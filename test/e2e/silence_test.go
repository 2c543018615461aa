package e2e

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// silent is a workload cluster that shows its version, and hangs on Secrets until it is healed: on all requests,
// because its etcd has lost its quorum, or on writes, because a webhook does. After that it refuses them.
type silent struct {
	server *httptest.Server
	writes bool // it hangs on writes only
	healed atomic.Bool
	asked  atomic.Int32 // requests that hang now
	most   atomic.Int32
}

func newSilent(t *testing.T, writes bool) *silent {
	t.Helper()

	s := &silent{writes: writes}
	s.server = httptest.NewTLSServer(s)
	t.Cleanup(func() {
		s.server.CloseClientConnections()
		s.server.Close()
	})

	return s
}

func (s *silent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")

	code, reason := http.StatusForbidden, "Forbidden"

	switch {
	case r.URL.Path == "/version":
		_, _ = fmt.Fprint(w, `{"major":"1","minor":"37","gitVersion":"v1.37.1"}`)

		return
	case strings.HasSuffix(r.URL.Path, "/namespaces/kube-system"), s.healed.Load():
	case s.writes && r.Method == http.MethodGet:
		code, reason = http.StatusNotFound, "NotFound"
	default:
		s.hang(r)
	}

	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"no"}`, reason, code)
}

// hang ends when whoever asks has given up.
func (s *silent) hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection is not seen

	// A dry run is the probe's, which takes no worker. Of two requests one after the other, the second may be here
	// before the end of the first is seen.
	if r.URL.Query().Get("dryRun") == "" && stays(r) {
		now := s.asked.Add(1)
		defer s.asked.Add(-1)

		for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
		}
	}

	<-r.Context().Done()
	panic(http.ErrAbortHandler) // there must be no answer after all
}

// stays reports whether a request is not given up within a moment; what hangs does so for seconds.
func stays(r *http.Request) bool {
	select {
	case <-r.Context().Done():
		return false
	case <-time.After(500 * time.Millisecond):
		return true
	}
}

func (s *silent) kubeconfig() string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})

	return fmt.Sprintf(`current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: '%s', certificate-authority-data: %s}}]
users: [{name: it, user: {token: some-token}}]`, s.server.URL, base64.StdEncoding.EncodeToString(ca))
}

// A workload cluster that answers but hangs on what it stores holds up a quarter of the workers, however many
// kubeconfigs lead there: objects of other clusters become Ready meanwhile, and its own say what is wrong.
func TestASilentClusterHurtsOnlyItself(t *testing.T) {
	for _, tc := range []struct {
		name   string
		writes bool
		teams  int // with a kubeconfig each
	}{
		{"hangs", false, 4},
		{"hangs at writes", true, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			testSilentCluster(t, tc.writes, tc.teams)
		})
	}
}

func testSilentCluster(t *testing.T, writes bool, teams int) {
	t.Helper()

	const (
		each    = 20 // of both kinds; there are 8 workers
		orphans = "  deletionPolicy: Orphan"
	)

	r := newReleasing(t)
	s := newSilent(t, writes)

	manifests := []string{clusterManifest("silent", "  suspend: true")}
	for team := range teams {
		manifests = append(manifests, rawKubeconfigManifest(fmt.Sprintf("silent-%d", team), s.kubeconfig()))
	}

	for i := range each {
		name, to := fmt.Sprintf("hangs-%d", i), strings.NewReplacer("{name: demo}", "{name: silent}", "demo-kubeconfig", fmt.Sprintf("silent-%d", i%teams))
		sync := strings.Replace(r.syncManifest(name, orphans), "name: registry\nspec", "name: "+name+"\nspec", 1)
		manifests = append(manifests, to.Replace(sync), to.Replace(r.releaseOf(name, "1.0.0", orphans)))
	}

	r.apply(manifests...)
	r.wait("the cluster to hang", func() error {
		if s.asked.Load() < 2 {
			return errors.New("nobody asks it")
		}

		return nil
	})

	r.apply(r.syncManifest("pull", orphans))

	r.ready("oss", "registry")
	r.apply(r.release(orphans))
	r.ready("ohr", "app")

	for i := range each {
		r.waitCondition("oss", fmt.Sprintf("hangs-%d", i), v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonClusterUnreachable)
	}

	// Two runs, and while nothing is read the probe of each kubeconfig.
	want := int32(2)
	if !writes {
		want += int32(teams)
	}

	if most := s.most.Load(); most > want {
		t.Errorf("%d requests hung at the same time, want %d at most", most, want)
	}

	s.healed.Store(true)
	r.wait("the objects to go on", func() error {
		found := apimeta.FindStatusCondition(get[anyKind](r.space, "oss", "hangs-0").Status.Conditions, v1alpha1.ConditionReady)
		if found == nil || found.Reason != v1alpha1.ReasonForbidden {
			return fmt.Errorf("Ready is %+v", found)
		}

		return nil
	})
}
