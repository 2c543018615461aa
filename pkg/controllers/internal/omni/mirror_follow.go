package omni

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/pkg/omni/resources"
)

// follow keeps one table current for ever: watch, and when the watch is lost,
// wait and watch again. What is opened anew unasked was not lost.
func (m *Mirror) follow(ctx context.Context, resourceType resource.Type) {
	delay := m.options.ResyncMinDelay

	for ctx.Err() == nil {
		opened, hurried := m.options.Now(), m.nextHurry()

		synced, err := m.watchOnce(ctx, resourceType)
		if ctx.Err() != nil {
			return
		}

		if synced && errors.Is(err, errRenewed) {
			continue
		}

		// One that is lost again and again right after it was complete is no recovery.
		if synced && m.options.Now().Sub(opened) > delay {
			delay = m.options.ResyncMinDelay
		}

		m.store.lost(resourceType)

		if m.health.lost(resourceType, err) {
			m.options.HealthChanged()
		}

		m.rest(ctx, delay, hurried)
		delay = min(2*delay, m.options.ResyncMaxDelay)
	}
}

// rest waits before a watch is opened again. Those that are hurried still spread
// a little.
func (m *Mirror) rest(ctx context.Context, delay time.Duration, hurried <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-time.After(jittered(delay)):
	case <-hurried:
		select {
		case <-ctx.Done():
		case <-time.After(jittered(min(delay, m.options.ResyncMinDelay))):
		}
	}
}

// hurry ends the pauses of all lost watches: Omni is known to be back.
func (m *Mirror) hurry() {
	m.hurrying.Lock()
	defer m.hurrying.Unlock()

	close(m.hurried)
	m.hurried = make(chan struct{})
}

func (m *Mirror) nextHurry() <-chan struct{} {
	m.hurrying.Lock()
	defer m.hurrying.Unlock()

	return m.hurried
}

// jittered takes up to half off at random, so that many watches that were lost
// together do not return together.
func jittered(delay time.Duration) time.Duration {
	return delay - rand.N(delay/2+1)
}

// watchOnce runs one watch to its end and tells whether it got complete.
func (m *Mirror) watchOnce(ctx context.Context, resourceType resource.Type) (synced bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	// The watch has no deadline of its own, and its request waits for the
	// server's first message.
	alarm := time.AfterFunc(m.options.BootstrapTimeout, func() { cancel(errBootstrapTimeout) })
	defer alarm.Stop()

	opened := m.options.Now()

	end := time.AfterFunc(jittered(m.options.WatchLife), func() { cancel(errRenewed) })
	defer end.Stop()

	events := make(chan []state.Event)
	kind := resource.NewMetadata(resources.DefaultNamespace, resourceType, "", resource.VersionUndefined)

	if err = m.source.WatchKindAggregated(ctx, kind, events, state.WithBootstrapContents(true)); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}

		return false, fmt.Errorf("watch %s: %w", resourceType, err)
	}

	reception := reception{mirror: m, resourceType: resourceType, alarm: alarm, snapshot: map[resource.ID]resource.Resource{}}

	for err == nil {
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-m.renew[resourceType]:
			if m.renewable(opened) {
				err = errRenewed
			}
		case batch := <-events:
			err = reception.receive(batch)
		}
	}

	return reception.synced, fmt.Errorf("watch %s: %w", resourceType, err)
}

// reception is what has arrived of one watch.
type reception struct {
	mirror       *Mirror
	resourceType resource.Type
	alarm        *time.Timer // rings if the first contents take too long
	snapshot     map[resource.ID]resource.Resource
	synced       bool
}

// receive takes over one batch of events: first the snapshot, then changes.
func (r *reception) receive(batch []state.Event) error {
	if r.synced {
		return r.mirror.applyBatch(batch)
	}

	rest, done, err := fillSnapshot(r.snapshot, batch)
	if err != nil {
		return err
	}

	if !done {
		return nil
	}

	if !r.alarm.Stop() {
		return errBootstrapTimeout
	}

	r.synced = true
	r.mirror.bootstrapped(r.resourceType, r.snapshot)
	r.snapshot = nil

	return r.mirror.applyBatch(rest)
}

// errBootstrapTimeout ends a watch whose first contents never came to an end.
var errBootstrapTimeout = fmt.Errorf("the first contents did not arrive in time: %w", context.DeadlineExceeded)

// fillSnapshot collects events until the end of the first contents and returns
// those that came after it in the same batch.
func fillSnapshot(snapshot map[resource.ID]resource.Resource, batch []state.Event) (rest []state.Event, done bool, err error) {
	for i, event := range batch {
		switch event.Type {
		case state.Created, state.Updated:
			snapshot[event.Resource.Metadata().ID()] = event.Resource
		case state.Destroyed:
			delete(snapshot, event.Resource.Metadata().ID())
		case state.Bootstrapped:
			return batch[i+1:], true, nil
		case state.Errored:
			return nil, false, event.Error
		case state.Noop:
		}
	}

	return nil, false, nil
}

// bootstrapped takes over a complete snapshot; only differences are told. The
// first time it stays silent about clusters until every table is complete,
// because nobody can read before that: the health callback comes then, and
// whoever waits for it looks at all of its clusters.
func (m *Mirror) bootstrapped(resourceType resource.Type, snapshot map[resource.ID]resource.Resource) {
	touched := m.store.replace(resourceType, snapshot)
	changed := m.health.found(resourceType)

	m.hurry()

	if m.store.complete() {
		m.tell(touched)
	}

	if changed {
		m.options.HealthChanged()
	}
}

// applyBatch takes over changes and tells each concerned cluster once.
func (m *Mirror) applyBatch(batch []state.Event) error {
	var touched []string

	for _, event := range batch {
		switch event.Type {
		case state.Created, state.Updated:
			touched = append(touched, m.store.put(event.Resource, false)...)
		case state.Destroyed:
			touched = append(touched, m.store.put(event.Resource, true)...)
		case state.Errored:
			m.tell(distinct(touched))

			return event.Error
		case state.Bootstrapped, state.Noop:
		}
	}

	m.tell(distinct(touched))

	return nil
}

func (m *Mirror) tell(clusters []string) {
	slices.Sort(clusters)

	for _, cluster := range clusters {
		m.options.ClusterChanged(cluster)
	}
}
