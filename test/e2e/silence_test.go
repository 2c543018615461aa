package e2e

import (
	"cmp"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// silent is a workload cluster that shows its version, and hangs on Secrets until it is healed: on all requests,
// because its etcd has lost its quorum, or on writes, because a webhook does. After that it refuses them.
type silent struct {
	server *httptest.Server
	writes bool // it hangs on writes only
	healed atomic.Bool
	asked  atomic.Int32 // requests of runs that hang now
	most   atomic.Int32
	// gaveUp are the credentials with which a run has given up: what is asked with them after that is the probe's.
	gaveUp sync.Map
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
		_, _ = fmt.Fprint(w, `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`)

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

	// Of two requests one after the other, the second may be here before the end of the first is seen.
	if !s.probes(r) && stays(r) {
		now := s.asked.Add(1)
		defer s.asked.Add(-1)

		for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
		}

		<-r.Context().Done()
		s.gaveUp.Store(r.Header.Get("Authorization"), true)
	}

	<-r.Context().Done()
	panic(http.ErrAbortHandler) // there must be no answer after all
}

// probes reports whether a request is the probe's, which takes no worker: a dry run, or a read with a kubeconfig with which a run has
// given up.
func (s *silent) probes(r *http.Request) bool {
	_, known := s.gaveUp.Load(r.Header.Get("Authorization"))

	return r.URL.Query().Get("dryRun") != "" || known && r.Method == http.MethodGet
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

// kubeconfig has a token of its own.
func (s *silent) kubeconfig(token string) string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})

	return fmt.Sprintf(`current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: '%s', certificate-authority-data: %s}}]
users: [{name: it, user: {token: %s}}]`, s.server.URL, base64.StdEncoding.EncodeToString(ca), token)
}

const orphans = "  deletionPolicy: Orphan"

// syncNamed is a copy of the Secret to a target with the name of the object.
func (d *delivery) syncNamed(name string) string {
	return strings.Replace(d.syncManifest(name, orphans), "name: registry\nspec", "name: "+name+"\nspec", 1)
}

// inCluster puts a manifest of a copy or a release into another cluster.
func inCluster(cluster, kubeconfig string) *strings.Replacer {
	return strings.NewReplacer("{name: demo}", "{name: "+cluster+"}", "demo-kubeconfig", kubeconfig)
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

	const each = 20 // of both kinds; there are 8 workers

	r := newReleasing(t)
	s := newSilent(t, writes)

	manifests := []string{clusterManifest("silent", "  suspend: true")}
	for team := range teams {
		name := fmt.Sprintf("silent-%d", team)
		manifests = append(manifests, rawKubeconfigManifest(name, s.kubeconfig(name)))
	}

	for i := range each {
		name, to := fmt.Sprintf("hangs-%d", i), inCluster("silent", fmt.Sprintf("silent-%d", i%teams))
		manifests = append(manifests, to.Replace(r.syncNamed(name)), to.Replace(r.releaseOf(name, "1.0.0", orphans)))
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

	if most := s.most.Load(); most > 2 {
		t.Errorf("%d runs hung at the same time, want 2 at most", most)
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

// All workload clusters of one namespace hang, and there are more than enough to keep every worker: they keep three quarters of those of
// a kind. A copy and a release of another namespace become Ready meanwhile. What waits is counted.
func TestSilentClustersOfANamespaceLeaveWorkersToOthers(t *testing.T) {
	t.Parallel()

	const (
		clusters = 4 // of one kind, with two runs each
		each     = 5 // objects in a cluster, with a kubeconfig each
		share    = 6 // of the 8 workers of a kind
	)

	r := newReleasing(t)
	hanging := newSpaceNamed(t, "-hangs")
	hanging.apply(sourceManifest("one"))

	silence := map[string]*silent{}

	for kind, manifest := range map[string]func(name string) string{
		"OmniSecretSync":  r.syncNamed,
		"OmniHelmRelease": func(name string) string { return r.releaseOf(name, "1.0.0", orphans) },
	} {
		silence[kind] = newSilent(t, false)

		for i := range clusters {
			hanging.silentCluster(strings.ToLower(kind)+fmt.Sprint("-", i), silence[kind], each, manifest)
		}
	}

	hanging.wait("the clusters to keep what they may", func() error {
		for kind, s := range silence {
			if most := s.most.Load(); most < share {
				return fmt.Errorf("%d runs of %s hang", most, kind)
			}
		}

		return nil
	})

	bounded := func() error {
		for kind, s := range silence {
			if most := s.most.Load(); most > share {
				return env.GiveUp(fmt.Errorf("%d runs of %s hung at the same time, want %d at most", most, kind, share))
			}
		}

		return nil
	}

	r.apply(r.syncManifest("pull", orphans), r.release(orphans))
	hanging.wait("those that wait to be counted", func() error {
		exposed, err := stack.Controller.Metrics(t.Context())

		for kind := range silence {
			waits := regexp.MustCompile(fmt.Sprintf(`omni_workload_runs_waiting\{kind=%q,slot="namespace"\} [1-9]`, kind))
			if err == nil && !waits.MatchString(exposed) {
				err = fmt.Errorf("no %s waits", kind)
			}
		}

		return cmp.Or(bounded(), err)
	})
	r.ready("oss", "registry")
	r.ready("ohr", "app")

	for kind, s := range silence {
		t.Logf("%d runs of %s hang now that the objects of the other namespace are Ready", s.asked.Load(), kind)
	}

	if err := bounded(); err != nil {
		t.Error(err)
	}
}

// silentCluster makes a cluster, and objects that work in it, each with a kubeconfig of its own.
func (s *space) silentCluster(name string, silence *silent, objects int, manifest func(name string) string) {
	s.t.Helper()

	manifests := []string{clusterManifest(name, "  suspend: true")}

	for i := range objects {
		object := fmt.Sprintf("%s-%d", name, i)
		manifests = append(manifests, rawKubeconfigManifest(object, silence.kubeconfig(object)), inCluster(name, object).Replace(manifest(object)))
	}

	s.apply(manifests...)
}
