package clusteraccess

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// requesterWith returns a sync of an OmniCluster with a kubeconfig in a Secret of its own.
func (l *cleanupFixture) requesterWith(cluster, secret string, kubeconfig []byte) Requester {
	l.Helper()

	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: secret}, Data: map[string][]byte{"kubeconfig": kubeconfig}}
	if err := l.access.Client.Create(l.Context(), object); err != nil {
		l.Fatal(err)
	}

	sync := &v1alpha1.OmniSecretSync{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: secret, UID: types.UID(secret)}}
	sync.Spec.ClusterRef.Name, sync.Spec.KubeconfigSecretRef.Name = cluster, secret

	return RequesterOf(sync, nil)
}

// open repeats Open until the cluster has answered.
func (l *cleanupFixture) open(requester Requester) (*Opened, loop.Outcome) {
	l.Helper()

	for {
		opened, outcome, err := l.access.Open(l.Context(), requester)
		if err != nil {
			l.Fatal(err)
		}

		if outcome.Reason() != v1alpha1.ReasonClusterUnreachable {
			return opened, outcome
		}
	}
}

func newClusters(t *testing.T) *cleanupFixture {
	t.Helper()

	return newCleanupFixture(t,
		&v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}},
		&v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}})
}

// TestSlotsAreSharedByAllKubeconfigs: the slots belong to the cluster: each team has a kubeconfig of its own, and one
// is renewed. Objects of another cluster have other slots, also with the same server and the same token.
func TestSlotsAreSharedByAllKubeconfigs(t *testing.T) {
	l := newClusters(t)
	l.access.Clusters.Runs = 2

	handler := func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u-1"}}`)
	}
	config := serve(t, handler)

	var (
		entered []*Opened
		later   []Requester
	)

	for team := range 4 {
		requester := l.requesterWith("demo", fmt.Sprintf("team-%d", team), config)
		if opened, outcome := l.open(requester); opened != nil {
			entered = append(entered, opened)
		} else if later = append(later, requester); !outcome.Postpones() {
			t.Errorf("team %d: %+v", team, outcome)
		}
	}

	if len(entered) != 2 {
		t.Fatalf("%d runs are in the cluster, want 2", len(entered))
	}

	renewed := &corev1.Secret{}
	renewed.Namespace, renewed.Name, renewed.Data = "ns", later[0].Kubeconfig.Name, map[string][]byte{"kubeconfig": append(config, '\n')}

	if err := l.access.Client.Update(t.Context(), renewed); err != nil {
		t.Fatal(err)
	}

	if opened, _ := l.open(later[0]); opened != nil {
		t.Error("a new kubeconfig brought new slots")
	}

	if opened, outcome := l.open(l.requesterWith("other", "elsewhere", config)); opened == nil {
		t.Errorf("another cluster has no slot: %+v", outcome)
	} else {
		opened.Done()
	}

	for _, opened := range entered {
		opened.Done()
	}

	opened, outcome := l.open(later[0])
	if opened == nil {
		t.Fatalf("no slot is free: %+v", outcome)
	}

	opened.Done()
}

// TestAskingTakesASlot: probing a dead cluster takes a slot, too: with a kubeconfig for each object, it would block a
// worker for each. A requester that is refused releases its slot.
func TestAskingTakesASlot(t *testing.T) {
	l := newClusters(t)
	l.access.Clusters.Runs = 1

	listener, err := net.Listen("tcp", "127.0.0.1:0") // never answers
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = listener.Close() })

	dead := kubeconfig("server: 'https://"+listener.Addr().String()+"'", "token: t")
	asking, waiting := l.requesterWith("demo", "asking", dead), l.requesterWith("demo", "waiting", dead)

	// The probe runs until the test has seen its effect on others.
	asked, err := l.access.Clusters.Get(t.Context(), Key{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "asking"}, SecretKey: "kubeconfig"}, dead)
	if err != nil {
		t.Fatal(err)
	}

	asked.probeWait = time.Hour
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})

	go func() {
		defer close(ended)

		_, _, _ = l.access.Open(ctx, asking)
	}()

	connection, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = connection.Close() })

	if _, outcome, err := l.access.Open(t.Context(), waiting); err != nil || outcome.Reason() != v1alpha1.ReasonProgressing || !outcome.Postpones() {
		t.Errorf("it does not wait for its turn: %+v, %v", outcome, err)
	}

	stop()
	<-ended

	if _, outcome, err := l.access.Open(t.Context(), waiting); err != nil || outcome.Reason() != v1alpha1.ReasonClusterUnreachable {
		t.Errorf("the slot was not given back: %+v, %v", outcome, err)
	}

	if taken, _ := l.access.Clusters.limiter.Load(); taken != 0 {
		t.Errorf("%d slots are taken", taken)
	}
}

// TestANamespaceLeavesWorkersToOthers: runs in many clusters of one namespace leave workers of their kind to other namespaces. Who
// waits has no slot of its cluster, and is woken by the end of a run in any cluster of the namespace.
func TestANamespaceLeavesWorkersToOthers(t *testing.T) {
	clusters := newClusters(t).access.Clusters
	clusters.Runs, clusters.SyncRuns, clusters.ReleaseRuns = 2, 3, 1
	woken := make(chan types.NamespacedName, 1)
	wake := listening(t, woken)
	meta := func(namespace, cluster string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: "of-" + cluster}
	}
	sync := func(namespace, cluster string) (func(), loop.Outcome) {
		object := &v1alpha1.OmniSecretSync{ObjectMeta: meta(namespace, cluster)}
		object.Spec.ClusterRef.Name = cluster

		return clusters.enter(RequesterOf(object, wake))
	}
	release := func(namespace, cluster string) func() {
		object := &v1alpha1.OmniHelmRelease{ObjectMeta: meta(namespace, cluster)}
		object.Spec.ClusterRef.Name = cluster
		exit, _ := clusters.enter(RequesterOf(object, wake))

		return exit
	}

	var first func()

	for i := range clusters.SyncRuns {
		exit, outcome := sync("hangs", fmt.Sprint("c", i))
		if exit == nil {
			t.Fatalf("sync %d has no slot: %+v", i, outcome)
		}

		if first == nil {
			first = exit
		}
	}

	exit, outcome := sync("hangs", "c3")
	if exit != nil || !outcome.Postpones() || !strings.Contains(outcome.Message(), "namespace") {
		t.Fatalf("a namespace has more than its share: %+v", outcome)
	}

	if taken, _ := clusters.limiter.Load(); taken != 3 {
		t.Errorf("%d slots of clusters are taken, want 3: who waits has none", taken)
	}

	if other, outcome := sync("other", "c0"); other == nil {
		t.Errorf("another namespace has no slot: %+v", outcome)
	}

	if release("hangs", "c3") == nil || release("hangs", "c4") != nil {
		t.Error("releases have no share of their own")
	}

	for range clusters.Runs { // the first of these is the second run there
		sync("other", "c0")
	}

	for kind, want := range map[string][2]int{KindSecretSync: {1, 1}, KindHelmRelease: {0, 1}} {
		if forCluster, forNamespace := clusters.Waiting(kind); forCluster != want[0] || forNamespace != want[1] {
			t.Errorf("%s: %d wait for their cluster and %d for their namespace, want %v", kind, forCluster, forNamespace, want)
		}
	}

	first()
	first()

	if got := <-woken; got.Name != "of-c3" {
		t.Errorf("%s was woken", got)
	}

	if exit, outcome = sync("hangs", "c3"); exit == nil {
		t.Errorf("no slot is free: %+v", outcome)
	}

	if exit, _ := sync("hangs", "c4"); exit != nil {
		t.Error("one run that ended twice left two slots")
	}
}
