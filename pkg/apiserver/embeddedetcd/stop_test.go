package embeddedetcd

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// TestASilentClientDoesNotHoldUpAStop: somebody connects to the socket and says nothing. What was written is there in the
// next start, which needs the directory to be free.
func TestASilentClientDoesNotHoldUpAStop(t *testing.T) {
	dir := t.TempDir()

	first, err := Start(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}

	put(t, first, "early")

	silent, err := net.Dial("unix", strings.TrimPrefix(first.Endpoint(), endpointStart))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()

	// etcd accepts connections in turn: when it serves this one, it has accepted the silent one before.
	put(t, first, "late")

	first.timeout = 2 * time.Second
	if err := first.Stop(); !errors.Is(err, ErrForced) {
		t.Fatalf("got %v, want %v", err, ErrForced)
	}

	second, err := Start(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}

	defer func() {
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
	}()

	for _, key := range []string{"early", "late"} {
		if got, err := clientOf(t, second).Get(t.Context(), key); err != nil || got.Count != 1 {
			t.Errorf("%s: %v %v", key, got, err)
		}
	}
}

// TestACallKeepsTheDatabaseOpen: a stop ends in time, but does not close the database under a call that does not end.
func TestACallKeepsTheDatabaseOpen(t *testing.T) {
	server, err := Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}

	put(t, server, "key")

	etcd := server.etcd.Server
	server.timeout = time.Second

	if err := server.callers.enter(); err != nil {
		t.Fatal(err)
	}

	if err := server.Stop(); !errors.Is(err, ErrForced) {
		t.Fatalf("got %v, want %v", err, ErrForced)
	}

	answer, err := etcd.Range(t.Context(), &etcdserverpb.RangeRequest{Key: []byte("key")})
	if err != nil || answer.GetCount() != 1 {
		t.Errorf("a read after the stop: %v %v", answer, err)
	}

	server.callers.exit()

	await.Receive(t, "etcd stops without calls", etcd.StopNotify())
}

func put(t *testing.T, server *Server, key string) {
	t.Helper()

	if _, err := clientOf(t, server).Put(t.Context(), key, "value"); err != nil {
		t.Fatal(err)
	}
}

// clientOf returns a new client, for a connection of its own.
func clientOf(t *testing.T, server *Server) *clientv3.Client {
	t.Helper()

	client, err := server.Client()
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { client.Close() })

	return client
}
