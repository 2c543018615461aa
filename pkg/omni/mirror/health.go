package mirror

import (
	"fmt"
	"sync"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// Health is the state of a mirror.
type Health struct {
	// Synced is true if every watch is complete and runs.
	Synced bool
	// Since is when Synced last changed (at first: when the mirror started).
	Since time.Time
	// Outage is when the copy was first lost since it was complete for ten seconds; zero if it is complete, or never was for
	// so long. A copy that is lost again right after it was complete is still in the same outage.
	Outage time.Time
	// Class is the class of the failure; ClassNotReady while the first contents are being read and nothing has failed.
	Class omni.Class
	// Message is the failure in one bounded line; empty if Synced.
	Message string
}

// OutageGrace is how long lost watches may be those of a restart of Omni: it takes seconds, and the watches are opened
// again within seconds of its end. A copy that was complete for so long has recovered.
const OutageGrace = 10 * time.Second

// Grace returns how much longer the copy may be incomplete because of a restart of Omni, which is nothing to show; 0 if
// it is complete, or something else keeps it from being so.
func (h Health) Grace(now time.Time) time.Duration {
	if h.Outage.IsZero() || h.Class != omni.ClassUnreachable && h.Class != omni.ClassTransient {
		return 0
	}

	return max(0, OutageGrace-now.Sub(h.Outage))
}

// healthKeeper derives one Health from the watches of all types.
type healthKeeper struct {
	mu      sync.Mutex
	now     func() time.Time
	missing map[resource.Type]error // nil error: being read for the first time
	kinds   int                     // that are watched
	failed  error                   // what ended the mirror for good
	outage  time.Time               // when the last one began
	current Health                  // without its message
}

func newHealthKeeper(kinds []mirroredKind, now func() time.Time) *healthKeeper {
	keeper := &healthKeeper{now: now, kinds: len(kinds), missing: map[resource.Type]error{}}

	for _, kind := range kinds {
		keeper.missing[kind.resourceType] = nil
	}

	keeper.current = keeper.derive()
	keeper.current.Since = now()

	return keeper
}

// get returns Health. The message is made here: each watch of an Omni that is away is lost four times a minute, and who asks does
// so less often.
func (k *healthKeeper) get() Health {
	k.mu.Lock()
	defer k.mu.Unlock()

	health := k.current
	health.Message = k.message()

	return health
}

func (k *healthKeeper) synced() bool {
	k.mu.Lock()
	defer k.mu.Unlock()

	return k.current.Synced
}

// allLost reports whether every watch has failed, and since when the copy is not complete.
func (k *healthKeeper) allLost() (since time.Time, all bool) {
	k.mu.Lock()
	defer k.mu.Unlock()

	_, lost := k.lostWatches()

	return k.current.Since, lost == k.kinds
}

// lost records a failed watch. It reports whether Health changed.
func (k *healthKeeper) lost(resourceType resource.Type, err error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()

	k.missing[resourceType] = err

	return k.update()
}

// found records a complete watch. It reports whether Health changed.
func (k *healthKeeper) found(resourceType resource.Type) bool {
	k.mu.Lock()
	defer k.mu.Unlock()

	delete(k.missing, resourceType)

	return k.update()
}

// fail records what ended the mirror for good.
func (k *healthKeeper) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()

	k.failed = err
	k.update()
}

// update stores the new Health and reports whether it changed. A message that only counts other watches is no change:
// all watches that are lost together are one event.
func (k *healthKeeper) update() bool {
	next := k.derive()
	next.Since = k.current.Since

	if next.Synced != k.current.Synced {
		next.Since = k.now()

		if k.current.Synced && next.Since.Sub(k.current.Since) >= OutageGrace {
			k.outage = next.Since
		}
	}

	if !next.Synced {
		next.Outage = k.outage
	}

	changed := next.Synced != k.current.Synced || next.Class != k.current.Class
	k.current = next

	return changed
}

func (k *healthKeeper) derive() Health {
	if k.failed != nil {
		return Health{Class: omni.Classify(k.failed)}
	}

	if len(k.missing) == 0 {
		return Health{Synced: true}
	}

	first, lost := k.lostWatches()
	if lost == 0 {
		return Health{Class: omni.ClassNotReady}
	}

	return Health{Class: omni.Classify(k.missing[first])}
}

// message is the text for the class that derive returns.
func (k *healthKeeper) message() string {
	if k.failed != nil {
		return omni.Message(k.failed)
	}

	if len(k.missing) == 0 {
		return ""
	}

	first, lost := k.lostWatches()

	switch said := omni.Message(k.missing[first]); lost {
	case 0:
		return fmt.Sprintf("reading %d kinds of resources", len(k.missing))
	case 1:
		return redact.Bounded(fmt.Sprintf("the watch of %s is lost: %s", omni.KindOf(first), said), redact.MaxBytes)
	default:
		return redact.Bounded(fmt.Sprintf("%d watches are lost; %s: %s", lost, omni.KindOf(first), said), redact.MaxBytes)
	}
}

// lostWatches returns how many watches have failed, and the first by name, so that the same failures give the same message; that of
// the first kind before all others, because in an outage its failure is the newest.
func (k *healthKeeper) lostWatches() (first resource.Type, lost int) {
	for resourceType, err := range k.missing {
		if err == nil {
			continue
		}

		if lost++; lost == 1 || resourceType < first {
			first = resourceType
		}
	}

	if asks := mirroredKinds()[0].resourceType; k.missing[asks] != nil {
		first = asks
	}

	return first, lost
}
