package embeddedetcd

import (
	"context"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// callers counts the calls of etcd in this process, and closes their clients. etcd waits for none of them when it stops,
// and a call that reads a closed database crashes the process.
type callers struct {
	ending context.Context //nolint:containedctx // of the server
	cancel context.CancelFunc

	mu    sync.Mutex
	ended bool
	calls sync.WaitGroup
}

func newCallers() *callers {
	c := new(callers)
	c.ending, c.cancel = context.WithCancel(context.Background())

	return c
}

// enter lets a call into etcd, until its exit. After the end it lets none in.
func (c *callers) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.ended {
		return rpctypes.ErrGRPCStopped
	}

	c.calls.Add(1)

	return nil
}

func (c *callers) exit() { c.calls.Done() }

// closeAtEnd makes the end close the client, if nobody does before.
func (c *callers) closeAtEnd(client *clientv3.Client) {
	forget := context.AfterFunc(c.ending, func() { _ = client.Close() }) // who got the client may close it as well
	context.AfterFunc(client.Ctx(), func() { forget() })
}

// end lets no more calls in, closes the clients, which ends their watches, and waits until every call has left.
func (c *callers) end() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()

	c.cancel()
	c.calls.Wait()
}
