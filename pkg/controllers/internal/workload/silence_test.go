package workload

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/wake"
)

// lostQuorum is a cluster that shows its version, and hangs on Secrets while hangs is set.
func lostQuorum(t *testing.T, hangs *atomic.Bool, reads *atomic.Int32) []byte {
	t.Helper()

	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/version":
			respond(w, http.StatusOK, `{"gitVersion":"v1.37.1"}`)
		case strings.HasSuffix(r.URL.Path, "/kube-system"):
			respond(w, http.StatusOK, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u-1"}}`)
		default:
			if reads.Add(1); hangs.Load() {
				_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection is not seen
				<-r.Context().Done()
				panic(http.ErrAbortHandler) // whoever has given up must not find an answer after all
			}

			respond(w, http.StatusOK, `{"kind":"Secret","apiVersion":"v1"}`)
		}
	})
}

// One worker finds out that a cluster hangs. No other one is held up, until the cluster has answered the probe.
func TestSilentCluster(t *testing.T) {
	var (
		hangs atomic.Bool
		reads atomic.Int32
		clock atomic.Int64
	)

	hangs.Store(true)

	now := func() time.Time { return time.Unix(clock.Load(), 0) }
	cluster := get(t, NewClusters(now), lostQuorum(t, &hangs, &reads))
	cluster.limit = 300 * time.Millisecond

	if _, err := identifyFinally(t, cluster); err != nil {
		t.Fatal(err)
	}

	read := func(ctx context.Context) (*corev1.Secret, error) {
		return cluster.Core().Secrets("apps").Get(ctx, "pull", metav1.GetOptions{})
	}

	if _, err := Read(t.Context(), cluster, read); err == nil {
		t.Fatal("it did not hang")
	}

	for range 3 { // the failure stands, also when the probe has come to the same end
		if _, err := cluster.Identify(t.Context()); !errors.Is(err, ErrSilent) || Reason(err) != v1alpha1.ReasonClusterUnreachable || !strings.Contains(cluster.Message(err), "etcd") {
			t.Errorf("got %v", err)
		}

		clock.Add(int64(badFor.Seconds()) + 1)
	}

	if got := reads.Load(); got != 3 {
		t.Errorf("%d reads, want one of a worker and two of the probe", got)
	}

	hangs.Store(false)

	if _, err := identifyFinally(t, cluster); err != nil {
		t.Errorf("it answers again: %v", err)
	}

	if _, err := Read(t.Context(), cluster, read); err != nil {
		t.Error(err)
	}
}

// A write that hangs is noted as a read is. The probe rehearses it and writes nothing.
func TestSilentAtWrites(t *testing.T) {
	var (
		hangs         atomic.Bool
		asked, writes atomic.Int32
		clock         atomic.Int64
	)

	hangs.Store(true)

	now := func() time.Time { return time.Unix(clock.Load(), 0) }
	cluster := get(t, NewClusters(now), lostQuorum(t, &hangs, &asked))
	cluster.limit = 100 * time.Millisecond

	if _, err := identifyFinally(t, cluster); err != nil {
		t.Fatal(err)
	}

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pull"}}
	write := func() error {
		_, err := Write(t.Context(), cluster, func(ctx context.Context) (*corev1.Secret, error) {
			writes.Add(1)

			return cluster.Core().Secrets("apps").Create(ctx, secret, metav1.CreateOptions{})
		}, func(ctx context.Context) {
			_, _ = cluster.Core().Secrets("apps").Create(ctx, secret, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		})

		return err
	}

	if err := write(); err == nil {
		t.Fatal("it did not hang")
	}

	for range 3 {
		if _, err := cluster.Identify(t.Context()); !errors.Is(err, ErrSilent) {
			t.Errorf("got %v", err)
		}

		clock.Add(int64(badFor.Seconds()) + 1)
	}

	if asked.Load() != 3 || writes.Load() != 1 {
		t.Errorf("%d requests, %d writes; want one of a worker and two of the probe", asked.Load(), writes.Load())
	}

	hangs.Store(false)

	if _, err := identifyFinally(t, cluster); err != nil {
		t.Errorf("it answers again: %v", err)
	}

	if err := write(); err != nil {
		t.Error(err)
	}
}

// A worker whose own time is over, and a read that is refused, say nothing about the cluster.
func TestOtherFailuresAreNoSilence(t *testing.T) {
	cluster := get(t, NewClusters(nil), kubeconfig("server: 'https://h'", "token: t"))
	stopped, stop := context.WithCancel(t.Context())
	stop()

	for ctx, failure := range map[context.Context]error{stopped: context.Canceled, t.Context(): errors.New("refused")} {
		if _, err := Read(ctx, cluster, func(context.Context) (int, error) { return 0, failure }); !errors.Is(err, failure) || cluster.err != nil {
			t.Errorf("got %v, %v", err, cluster.err)
		}
	}
}

// So many runs work in one cluster; the next ones are postponed, and woken when one ends.
func TestSeatsOfACluster(t *testing.T) {
	l := newLeaving(t, &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}})
	l.door.Clusters.Runs = 1
	woken := make(chan types.NamespacedName, 1)
	l.guest.Wake = listening(t, woken)

	first, _, err := l.leave()
	if err != nil || first.Part != PartCleanUp {
		t.Fatal(first, err)
	}

	opened, outcome, err := l.door.Open(t.Context(), l.guest)
	if opened != nil || !outcome.Postpones() || err != nil {
		t.Fatal(opened, outcome, err)
	}

	// After its hour, too, a deletion only waits for its turn.
	second, outcome, err := l.door.Leave(t.Context(), l.guest, l.clock.Add(2*longestFarewell))
	if second.Part != PartWait || !outcome.Postpones() || err != nil {
		t.Fatal(second, outcome, err)
	}

	first.Opened.Done()
	first.Opened.Done()

	if got := <-woken; got.Name != "pull" {
		t.Errorf("%s was woken", got)
	}

	if opened, _, err = l.door.Open(t.Context(), l.guest); opened == nil || err != nil {
		t.Fatal("no seat", err)
	}

	opened.Done()
}

// listening is a bell; what it rings for arrives in a channel.
func listening(t *testing.T, woken chan<- types.NamespacedName) *wake.Bell[types.NamespacedName] {
	t.Helper()

	bell := wake.NewBell[types.NamespacedName](wake.Pacing{})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)

	err := bell.Source(func(_ context.Context, name types.NamespacedName) []reconcile.Request {
		woken <- name

		return nil
	}).Start(t.Context(), queue)
	if err != nil {
		t.Fatal(err)
	}

	return bell
}
