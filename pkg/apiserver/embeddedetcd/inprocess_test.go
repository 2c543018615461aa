package embeddedetcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"omni.texashpc.com/omni-cluster-operator/test/await"
)

func started(t *testing.T) *Server {
	t.Helper()

	server, err := Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})

	return server
}

func inProcessClientOf(t *testing.T, server *Server) *clientv3.Client {
	t.Helper()

	client, err := server.InProcessClient()
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { client.Close() })

	return client
}

// TestAStopWaitsForWatches: a watch that catches up reads the database for every event, also for a while after its client
// has ended it. A read of a closed database crashes the process.
func TestAStopWaitsForWatches(t *testing.T) {
	for name, end := range map[string]func(*clientv3.Client, context.CancelFunc){
		"left":  func(*clientv3.Client, context.CancelFunc) {},
		"ended": func(client *clientv3.Client, cancel context.CancelFunc) { cancel(); client.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			server := started(t)
			client := inProcessClientOf(t, server)
			change(t, client, 50)

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()

			events := client.Watch(ctx, "/a/", clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithPrevKV())

			// etcd looks for watches that lag behind ten times a second.
			time.Sleep(200 * time.Millisecond)
			end(client, cancel)

			if err := server.Stop(); err != nil {
				t.Fatal(err)
			}

			ends(t, events)

			if _, err := client.Get(t.Context(), "/a/0"); !errors.Is(err, rpctypes.ErrStopped) {
				t.Errorf("a read after the stop: %v", err)
			}

			if _, err := server.InProcessClient(); err == nil {
				t.Error("a client of a stopped etcd")
			}
		})
	}
}

// change writes the same keys again and again, which gives a watch from the beginning a long way to go.
func change(t *testing.T, client *clientv3.Client, times int) {
	t.Helper()

	value := string(bytes.Repeat([]byte("x"), 100<<10))

	var all []clientv3.Op
	for key := range 14 {
		all = append(all, clientv3.OpPut(fmt.Sprintf("/a/%d", key), value))
	}

	for range times {
		if _, err := client.Txn(t.Context()).Then(all...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

func ends(t *testing.T, events clientv3.WatchChan) {
	t.Helper()

	await.Until(t, "the watch ends", func() bool {
		select {
		case _, open := <-events:
			return !open
		default:
			return false
		}
	})
}

// TestReadsInChunks: the first fill of a watch cache reads all objects of a kind, which together may be large.
func TestReadsInChunks(t *testing.T) {
	const objects, size = 40, 200 << 10

	server := started(t)
	client := inProcessClientOf(t, server)

	for key := range objects {
		if _, err := client.Put(t.Context(), fmt.Sprintf("/a/%02d", key), string(bytes.Repeat([]byte("x"), size))); err != nil {
			t.Fatal(err)
		}
	}

	stream, err := client.GetStream(t.Context(), "/a/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}

	var keys, chunks int

	for chunk := range stream {
		if chunk.Err() != nil {
			t.Fatal(chunk.Err())
		}

		for _, kv := range chunk.Kvs {
			if want := fmt.Sprintf("/a/%02d", keys); string(kv.Key) != want || len(kv.Value) != size {
				t.Errorf("%s with %d bytes, want %s", kv.Key, len(kv.Value), want)
			}

			keys++
		}

		if len(chunk.Kvs) > objects/2 {
			t.Errorf("%d objects at once", len(chunk.Kvs))
		}

		chunks++
	}

	if keys != objects || chunks < 3 {
		t.Errorf("%d objects in %d chunks", keys, chunks)
	}

	abandon(t, server, client)
}

// abandon reads in chunks and takes none: a stop and the end of the request end such a read as well.
func abandon(t *testing.T, server *Server, client *clientv3.Client) {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	for _, ctx := range []context.Context{ctx, t.Context()} {
		if _, err := client.GetStream(ctx, "/a/", clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
	}

	cancel()

	if err := server.Stop(); err != nil {
		t.Error(err)
	}
}
