package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/pkg/omni/resources/system"

	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
)

// follow keeps one table current for ever: it watches, and when the watch is lost, waits and watches again. A watch
// that ends to be renewed or widened is not lost, and opens again without a pause.
func (m *Mirror) follow(ctx context.Context, resourceType resource.Type) {
	pauses, lostAtOnce := m.pauses(), 0

	for ctx.Err() == nil {
		opened, reopened := m.options.Now(), m.nextReopening()

		synced, err := m.watchOnce(ctx, resourceType)
		if ctx.Err() != nil {
			return
		}

		if synced && errors.Is(err, errRenewed) || m.widened(resourceType, err) {
			continue
		}

		if errors.Is(err, errUpgraded) {
			m.health.fail(err)

			go m.end(m.options.Upgraded) // which waits for this watch, too

			return
		}

		if errors.Is(err, omni.ErrTooMuchData) {
			m.account.TooMuch(err)
		}

		// A watch that is lost again and again right after it was complete has not recovered, and waits for its whole pause.
		// A complete watch ends the pauses of all watches, its own included: those that are lost at once would never wait.
		switch recovered := m.options.Now().Sub(opened) > pauses.Longest(); {
		case synced && recovered:
			pauses, lostAtOnce = m.pauses(), 0
		case synced:
			if lostAtOnce++; lostAtOnce > 1 {
				reopened = nil
			}
		}

		m.store.lost(resourceType)

		if m.health.lost(resourceType, err) {
			m.options.HealthChanged()
		}

		pause := pauses.Next()
		if !synced {
			pause = m.pauseOfOutage(resourceType, pause)
		}

		m.waitToReopen(ctx, pause, reopened)
	}
}

// pauseOfOutage returns the pause of a watch that could not be opened. In an outage that is no restart of Omni, the watch of the first
// kind finds out often whether Omni is back, and reopens the others when it is complete: each request that Omni does not answer has
// been signed and sent for nothing, and there are as many as kinds for each connection.
func (m *Mirror) pauseOfOutage(resourceType resource.Type, pause time.Duration) time.Duration {
	switch lost, all := m.health.allLost(); {
	case !all || m.options.Now().Sub(lost) < OutageGrace:
		return pause
	case resourceType == mirroredKinds()[0].resourceType:
		return min(pause, limiter.Jitter(m.options.AwayFirstDelay))
	default:
		return max(pause, limiter.Jitter(m.options.AwayDelay))
	}
}

// waitToReopen waits before a watch is opened again. Watches that ReopenWatches wakes still wait for a short random
// time; with no channel, nothing wakes them.
func (m *Mirror) waitToReopen(ctx context.Context, pause time.Duration, reopened <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	case <-reopened:
		select {
		case <-ctx.Done():
		case <-time.After(limiter.Jitter(m.options.ResyncMinDelay)):
		}
	}
}

// ReopenWatches ends the pauses of all lost watches, because Omni is back.
func (m *Mirror) ReopenWatches() {
	m.reopening.Lock()
	defer m.reopening.Unlock()

	close(m.reopened)
	m.reopened = make(chan struct{})
}

func (m *Mirror) nextReopening() <-chan struct{} {
	m.reopening.Lock()
	defer m.reopening.Unlock()

	return m.reopened
}

// pauses returns the pauses between a lost watch and the next one. Each is shortened at random: many watches that were
// lost together must not return together.
func (m *Mirror) pauses() *limiter.Backoff {
	return limiter.NewBackoff(m.options.ResyncMinDelay, m.options.ResyncMaxDelay)
}

// watchOnce runs one watch to its end and reports whether its first contents were complete.
func (m *Mirror) watchOnce(ctx context.Context, resourceType resource.Type) (synced bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	// The watch has no deadline of its own, and its request blocks until the server's first message.
	alarm := time.AfterFunc(m.options.BootstrapTimeout, func() { cancel(errBootstrapTimeout) })
	defer alarm.Stop()

	opened := m.options.Now()

	end := time.AfterFunc(limiter.Jitter(m.options.WatchLife), func() { cancel(errRenewed) })
	defer end.Stop()

	watch, err := bounds.OpenWatch(m.account, *m.limits[resourceType])
	if err != nil {
		return false, err
	}
	defer watch.Close()

	events := make(chan state.Event)
	kind := resource.NewMetadata(namespaceOf(resourceType), resourceType, "", resource.VersionUndefined)

	// Each event arrives in a message of its own, not many in one: a whole fleet in one message would be hundreds of MiB,
	// which cannot be told from an attack before it is in memory. This package decodes the specs, after it has weighed
	// them.
	options := append(selection(resourceType), state.WithBootstrapContents(true), state.WithWatchKindUnmarshalOptions(state.WithSkipProtobufUnmarshal()))

	err = m.source.WatchKind(bounds.WithWatch(ctx, watch), kind, events, options...)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}

		return false, fmt.Errorf("watch %s: %w", resourceType, err)
	}

	reader := newWatchReader(m, resourceType, alarm)
	defer reader.abandon()

	for err == nil {
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-m.renew[resourceType]:
			if m.renewable(opened) {
				err = errRenewed
			}
		case event := <-events:
			err = reader.receive(event)
		}
	}

	return reader.synced, fmt.Errorf("watch %s: %w", resourceType, err)
}

// errBootstrapTimeout ends a watch whose first contents were not complete in time.
var errBootstrapTimeout = fmt.Errorf("the first contents did not arrive in time: %w", context.DeadlineExceeded)

// widened reports whether a watch ended because one message was longer than its limit, and doubles the limit.
func (m *Mirror) widened(resourceType resource.Type, err error) bool {
	var long *bounds.TooLong

	limit := m.limits[resourceType]
	if !errors.As(err, &long) || *limit >= bounds.MaxEvent {
		return false
	}

	*limit = min(2**limit, bounds.MaxEvent)

	return true
}

// overflow ends the mirror for good, because Omni sent too much, and drops all contents.
func (m *Mirror) overflow(err error) {
	m.health.fail(err)
	m.end(func() { m.options.Overflowed(err) })
}

// end ends the mirror for good, drops all contents, and tells why. Its health says so already.
func (m *Mirror) end(tell func()) {
	m.stop()
	m.running.Wait()
	m.store.clear()
	m.options.HealthChanged()
	tell()
}

// errUpgraded ends a mirror whose Omni is another version than at its start.
var errUpgraded = fmt.Errorf("%w: Omni is another version now, and the connection is opened again", omni.ErrNotSynced)

// isUpgraded reports whether a resource says that Omni is another version than at the start.
func (m *Mirror) isUpgraded(sent resource.Resource) bool {
	current, ok := sent.(*system.SysVersion)

	return ok && m.options.Version != (omni.Version{}) && omni.VersionOf(current) != m.options.Version
}

func (m *Mirror) tell(clusters []string) {
	slices.Sort(clusters)

	for _, cluster := range clusters {
		m.options.ClusterChanged(cluster)
	}
}

// errRenewed ends a watch that is opened again although no error was reported. A proxy between us and Omni may keep a
// stream open through which no events come any more, and answer its keepalives. Single calls still succeed, so nothing
// else detects this.
var errRenewed = errors.New("opened anew")

// renewals request that watches be opened again, by type.
type renewals map[resource.Type]chan struct{}

func newRenewals(kinds []mirroredKind) renewals {
	asked := renewals{}
	for _, kind := range kinds {
		asked[kind.resourceType] = make(chan struct{}, 1)
	}

	return asked
}

// ask requests that a type's watch be opened again, unless a request is pending.
func (r renewals) ask(resourceType resource.Type) {
	select {
	case r[resourceType] <- struct{}{}:
	default:
	}
}

// renewable reports whether a watch that was opened then is old enough to open again: one that is younger than the
// timeout of a write was opened after that write, and its first contents show it.
func (m *Mirror) renewable(opened time.Time) bool {
	return m.options.Now().Sub(opened) >= m.options.WriteVisibleTimeout
}
