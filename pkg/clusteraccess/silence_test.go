package clusteraccess

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// lostQuorum returns the kubeconfig of a cluster that shows its version, and hangs on Secrets while hangs is set.
func lostQuorum(t *testing.T, hangs *atomic.Bool) []byte {
	t.Helper()

	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/version":
			respond(w, http.StatusOK, `{"gitVersion":"v1.37.1"}`)
		case strings.HasSuffix(r.URL.Path, "/kube-system"):
			respond(w, http.StatusOK, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u-1"}}`)
		default:
			if hangs.Load() {
				_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection is not detected
				<-r.Context().Done()
				panic(http.ErrAbortHandler) // a client that has given up must not get an answer
			}

			respond(w, http.StatusOK, `{"kind":"Secret","apiVersion":"v1"}`)
		}
	})
}

// silent is a cluster that hangs from its first read on, and a stopped clock.
type silent struct {
	*testing.T

	hangs   atomic.Bool
	clock   atomic.Int64 // in seconds
	cluster *Cluster
}

func newSilent(t *testing.T) *silent {
	t.Helper()

	s := &silent{T: t}
	s.hangs.Store(true)
	s.cluster = get(t, NewClusters(func() time.Time { return time.Unix(s.clock.Load(), 0) }, loopback()), lostQuorum(t, &s.hangs))
	s.cluster.readTimeout = 100 * time.Millisecond // every hanging call has enough time to start

	if _, err := identifyFinally(t, s.cluster); err != nil {
		t.Fatal(err)
	}

	return s
}

// probed waits for the running probe. Its result counts until the clock advances.
func (s *silent) probed() {
	s.cluster.mu.Lock()
	running := s.cluster.probeEnded
	s.cluster.mu.Unlock()

	if running != nil {
		<-running
	}
}

// staysSilent identifies the cluster three times, and the last two start a probe: the failure stands, also after the
// probe has failed in the same way.
func (s *silent) staysSilent() {
	s.Helper()

	for range 3 {
		if _, err := s.cluster.Identify(s.Context()); !errors.Is(err, ErrSilent) || Reason(err) != v1alpha1.ReasonClusterUnreachable || !strings.Contains(s.cluster.Message(err), "etcd") {
			s.Errorf("got %v", err)
		}

		s.probed()
		s.clock.Add(int64(badFor.Seconds()) + 1)
	}
}

// comesBack lets the cluster answer, and the probe detect that.
func (s *silent) comesBack() {
	s.Helper()
	s.hangs.Store(false)
	s.cluster.readTimeout = time.Minute

	_, _ = s.cluster.Identify(s.Context()) // the failure stands until the probe ends
	s.probed()

	if _, err := s.cluster.Identify(s.Context()); err != nil {
		s.Errorf("it answers again: %v", err)
	}
}

// TestSilentCluster: one worker detects that a cluster hangs. No other worker is blocked until the cluster has answered
// the probe.
func TestSilentCluster(t *testing.T) {
	var reads atomic.Int32

	s := newSilent(t)
	read := func(ctx context.Context) (*corev1.Secret, error) {
		reads.Add(1)

		return s.cluster.Core().Secrets("apps").Get(ctx, "pull", metav1.GetOptions{})
	}

	if _, err := Read(t.Context(), s.cluster, read); err == nil {
		t.Fatal("it did not hang")
	}

	s.staysSilent()

	if got := reads.Load(); got != 3 {
		t.Errorf("%d reads, want one of a worker and two of the probe", got)
	}

	s.comesBack()

	if _, err := Read(t.Context(), s.cluster, read); err != nil {
		t.Error(err)
	}
}

// TestSilentAtWrites: a write that hangs counts like a read. The probe rehearses it and writes nothing.
func TestSilentAtWrites(t *testing.T) {
	var rehearsals, writes atomic.Int32

	s := newSilent(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pull"}}
	write := func() error {
		_, err := Write(t.Context(), s.cluster, func(ctx context.Context) (*corev1.Secret, error) {
			writes.Add(1)

			return s.cluster.Core().Secrets("apps").Create(ctx, secret, metav1.CreateOptions{})
		}, func(ctx context.Context) {
			rehearsals.Add(1)

			_, _ = s.cluster.Core().Secrets("apps").Create(ctx, secret, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		})

		return err
	}

	if err := write(); err == nil {
		t.Fatal("it did not hang")
	}

	s.staysSilent()

	if rehearsals.Load() != 2 || writes.Load() != 1 {
		t.Errorf("%d rehearsals, %d writes; want one write of a worker and two rehearsals of the probe", rehearsals.Load(), writes.Load())
	}

	s.comesBack()

	if err := write(); err != nil {
		t.Error(err)
	}
}

// TestARehearsalMayTakeAsLongAsItsWrite: an admission webhook that makes every write slow does not keep the cluster silent. What the
// probe asks besides takes its time, too.
func TestARehearsalMayTakeAsLongAsItsWrite(t *testing.T) {
	var allowed time.Duration

	s := newSilent(t)
	hang := func(ctx context.Context) (struct{}, error) {
		<-ctx.Done()

		return struct{}{}, ctx.Err()
	}

	if _, err := Write(t.Context(), s.cluster, hang, func(ctx context.Context) {
		end, _ := ctx.Deadline()
		allowed = time.Until(end)
	}); err == nil {
		t.Fatal("it did not hang")
	}

	s.clock.Add(int64(badFor.Seconds()) + 1)
	s.cluster.readTimeout = readTimeout
	_, _ = s.cluster.Identify(t.Context()) // the failure stands until the probe ends
	s.probed()

	if want := writeFactor*readTimeout - time.Second; allowed < want {
		t.Errorf("the rehearsal may take %s, want more than %s", allowed, want)
	}
}

// TestOtherFailuresAreNoSilence: a worker whose own context ended, and a refused read, do not make the cluster silent.
func TestOtherFailuresAreNoSilence(t *testing.T) {
	cluster := get(t, NewClusters(nil, loopback()), kubeconfig("server: 'https://h'", "token: t"))
	stopped, stop := context.WithCancel(t.Context())
	stop()

	for ctx, failure := range map[context.Context]error{stopped: context.Canceled, t.Context(): errors.New("refused")} {
		if _, err := Read(ctx, cluster, func(context.Context) (int, error) { return 0, failure }); !errors.Is(err, failure) || cluster.err != nil {
			t.Errorf("got %v, %v", err, cluster.err)
		}
	}
}
