package apiserver_test

import (
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	genericoptions "k8s.io/apiserver/pkg/server/options"

	"omni.texashpc.com/omni-cluster-operator/test/etcdtest"
)

// relay is a proxy between an API server and its etcd that can interrupt the traffic.
type relay struct {
	t        *testing.T
	listener net.Listener
	endpoint string // of the listener, as an etcd client dials it
	etcd     string // the socket behind it

	mu            sync.Mutex
	ended         bool
	fronts, backs []net.Conn
}

func newRelay(t *testing.T) *relay {
	t.Helper()

	// Not the test's directory: its path may be too long for a socket.
	listener, err := net.Listen("unix", filepath.Join(etcdtest.ShortDirectory(t), "relay.sock"))
	if err != nil {
		t.Fatal(err)
	}

	return relayOn(t, "unix://"+listener.Addr().String(), listener)
}

func relayOn(t *testing.T, endpoint string, listener net.Listener) *relay {
	t.Helper()

	r := &relay{t: t, listener: listener, endpoint: endpoint}

	t.Cleanup(r.gone)

	return r
}

// between changes the options of the API server so that it goes through the relay.
func (r *relay) between(options *genericoptions.EtcdOptions) {
	servers := options.StorageConfig.Transport.ServerList
	r.etcd = strings.TrimPrefix(servers[0], "unix://")
	servers[0] = r.endpoint

	go r.accept()
}

func (r *relay) accept() {
	for {
		front, err := r.listener.Accept()
		if err != nil {
			return
		}

		r.connect(front)
	}
}

// connect joins a new connection with one to the etcd. After hang, it leaves the connection without answers.
func (r *relay) connect(front net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.fronts = append(r.fronts, front)

	if r.ended {
		return
	}

	back, err := net.Dial("unix", r.etcd)
	if err != nil {
		front.Close()

		return
	}

	r.backs = append(r.backs, back)

	// The relay also passes on that the client closed its side: etcd's stop waits for a client that has connected and
	// says nothing.
	go func() { _, _ = io.Copy(back, front); back.Close() }()
	go func() { _, _ = io.Copy(front, back) }()
}

// hang makes all connections, old and new, wait for answers that never come.
func (r *relay) hang() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.ended = true

	for _, back := range r.backs {
		back.Close()
	}
}

// cut ends all connections; new ones work.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()

	for _, conn := range slices.Concat(r.fronts, r.backs) {
		conn.Close()
	}

	r.fronts, r.backs = nil, nil
}

// gone ends all connections and takes no new ones.
func (r *relay) gone() {
	r.hang()
	r.listener.Close()

	r.mu.Lock()
	defer r.mu.Unlock()

	for _, front := range r.fronts {
		front.Close()
	}
}
