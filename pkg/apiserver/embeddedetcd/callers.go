package embeddedetcd

import (
	"context"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// callers are the clients that call etcd in this process, and their calls. etcd waits for none of them when it stops, and
// a call that reads a closed database crashes the process.
type callers struct {
	mu      sync.Mutex
	ended   bool
	clients map[*clientv3.Client]bool
	calls   sync.WaitGroup
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

// add makes the end close the client, if nobody does before.
func (c *callers) add(client *clientv3.Client) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.ended {
		return rpctypes.ErrGRPCStopped
	}

	if c.clients == nil {
		c.clients = map[*clientv3.Client]bool{}
	}

	c.clients[client] = true
	context.AfterFunc(client.Ctx(), func() { c.forget(client) })

	return nil
}

func (c *callers) forget(client *clientv3.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()

	delete(c.clients, client)
}

// end lets no more calls in, closes the clients, which ends their watches, and waits until every call has left.
func (c *callers) end() {
	for _, client := range c.refuse() {
		_ = client.Close() // who got the client may close it as well
	}

	c.calls.Wait()
}

func (c *callers) refuse() []*clientv3.Client {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.ended = true

	clients := make([]*clientv3.Client, 0, len(c.clients))
	for client := range c.clients {
		clients = append(clients, client)
	}

	return clients
}
