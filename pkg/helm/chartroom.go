package helm

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// What this process holds of charts while their actions run: what workers answer, the manifests, and what Helm makes
// of both. An action can wait for hours, and there may be 64 of them at the same time.
const (
	// roomBytes is how much that may be together, in bytes. A chart that takes more has all that one namespace may have.
	roomBytes = 288 << 20
	// tenantBytes is how much of it one namespace may have.
	tenantBytes = 192 << 20
	// smallBytes is what an action may take without being counted, so that it never waits.
	smallBytes = 1 << 20

	// bytesPerValue is what a value of a manifest takes beside its text while Helm parses it.
	bytesPerValue = 200
	// manifestCopies and answerCopies are how often the text is there: printed, recorded, packed and sent.
	manifestCopies, answerCopies = 4, 3
)

// admitted is the room of the process: the memory is the process's, too.
//
//nolint:gochecknoglobals // see above
var admitted = newChartRoom(roomBytes, tenantBytes)

// costOf is about what a text takes whose size is this, in bytes.
func costOf(size foreign.Size, copies int64) int64 {
	return int64(size.Nodes)*bytesPerValue + int64(size.Bytes)*copies
}

// chartRoom bounds what is held at the same time, in all and for one tenant. Who waits is passed by those behind that fit:
// a chart of a usual size does not wait for the end of a very large one. It is safe for concurrent use.
type chartRoom struct {
	total, share int64

	mu      sync.Mutex
	held    int64
	tenants map[string]int64
	waiting []*guest
}

// guest is who has something in the room, or waits for that.
type guest struct {
	tenant  string
	cost    int64
	entered chan struct{}
}

func newChartRoom(total, share int64) *chartRoom {
	return &chartRoom{total: total, share: share, tenants: map[string]int64{}}
}

// enter waits until there is room. What is returned gives it back, once, however often it is called. The error is that of
// ctx.
func (r *chartRoom) enter(ctx context.Context, tenant string, cost int64) (leave func(), err error) {
	g, waits := r.begin(tenant, cost, true)
	if !waits {
		return r.leaves(g), nil
	}

	select {
	case <-g.entered:
		return r.leaves(g), nil
	case <-ctx.Done():
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	// Both may have come at once.
	if at := slices.Index(r.waiting, g); at >= 0 {
		r.waiting = slices.Delete(r.waiting, at, at+1)
	} else {
		r.give(g, -g.cost)
	}

	return nil, fmt.Errorf("wait until other large charts are done: %w", ctx.Err())
}

// try enters if there is room now.
func (r *chartRoom) try(tenant string, cost int64) (leave func(), ok bool) {
	g, waits := r.begin(tenant, cost, false)
	if waits {
		return nil, false
	}

	return r.leaves(g), true
}

// begin enters, or waits if that is wanted.
func (r *chartRoom) begin(tenant string, cost int64, wait bool) (g *guest, waits bool) {
	if cost <= smallBytes {
		cost = 0
	}

	g = &guest{tenant: tenant, cost: min(cost, r.share), entered: make(chan struct{})}

	r.mu.Lock()
	defer r.mu.Unlock()

	if r.fits(g) {
		r.give(g, g.cost)

		return g, false
	}

	if wait {
		r.waiting = append(r.waiting, g)
	}

	return g, true
}

func (r *chartRoom) fits(g *guest) bool {
	return g.cost == 0 || r.held+g.cost <= r.total && r.tenants[g.tenant]+g.cost <= r.share
}

// give changes what a guest has, and lets those in that fit then.
func (r *chartRoom) give(g *guest, change int64) {
	r.held += change

	if r.tenants[g.tenant] += change; r.tenants[g.tenant] == 0 {
		delete(r.tenants, g.tenant)
	}

	if change >= 0 {
		return
	}

	r.waiting = slices.DeleteFunc(r.waiting, func(next *guest) bool {
		if !r.fits(next) {
			return false
		}

		r.give(next, next.cost)
		close(next.entered)

		return true
	})
}

func (r *chartRoom) leaves(g *guest) func() {
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()

		r.give(g, -g.cost)
	})
}

// fullError is an answer of a worker for which there is no room now.
type fullError struct{ cost int64 }

// Error implements error. Nobody sees it: what it says is waited for.
func (e *fullError) Error() string { return "there is no room for the chart now" }
