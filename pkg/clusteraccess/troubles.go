package clusteraccess

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// step is a part of a clean-up that can be in trouble for itself.
type step int

const (
	stepOpen    step = iota + 1 // to get into the cluster
	stepCleanUp                 // to remove what is there
)

// troubles remembers since when deletions have not got on, as far as this process
// saw. A restart forgets it: then it is tried for a moment longer. The zero value
// is ready; it is safe for concurrent use.
type troubles struct {
	mu    sync.Mutex
	known map[troubleOf]trouble
}

type troubleOf struct {
	uid  types.UID
	step step
}

type trouble struct{ first, last time.Time }

// forgetTrouble is how long a trouble is remembered that nobody has again: an
// object whose finalizer somebody took off does not say goodbye.
const forgetTrouble = 10 * time.Minute

// first notes a trouble, and tells when it was first seen.
func (t *troubles) first(uid types.UID, step step, now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()

	for of, known := range t.known {
		if now.Sub(known.last) >= forgetTrouble {
			delete(t.known, of)
		}
	}

	if t.known == nil {
		t.known = map[troubleOf]trouble{}
	}

	of := troubleOf{uid, step}

	known, found := t.known[of]
	if !found {
		known.first = now
	}

	known.last = now
	t.known[of] = known

	return known.first
}

// over forgets a trouble.
func (t *troubles) over(uid types.UID, step step) {
	t.mu.Lock()
	defer t.mu.Unlock()

	delete(t.known, troubleOf{uid, step})
}

// InTrouble notes that the clean-up of an object that is being deleted failed in a
// cluster that lets it in, and gives the time for CleanupPolicy.First.
func (a *Access) InTrouble(object client.Object, now time.Time) time.Time {
	return a.troubles.first(object.GetUID(), stepCleanUp, now)
}
