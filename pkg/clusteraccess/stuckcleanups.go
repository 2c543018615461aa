package clusteraccess

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// step is a part of a clean-up that can fail by itself.
type step int

const (
	stepOpen    step = iota + 1 // to open the cluster
	stepCleanUp                 // to remove what is there
)

// stuckCleanups records since when clean-ups fail, as far as this process has seen. After a restart they start anew,
// and are tried for a moment longer. The zero value is ready to use; it is safe for concurrent use.
type stuckCleanups struct {
	mu    sync.Mutex
	known map[cleanupStep]failing
}

// cleanupStep is a step of the clean-up of one object.
type cleanupStep struct {
	uid  types.UID
	step step
}

// failing is when a step failed first and last.
type failing struct{ first, last time.Time }

// forgetAfter is how long a failure is kept that does not recur: if a user removes an object's finalizer, over is never
// called.
const forgetAfter = 10 * time.Minute

// first records that a step failed, and returns when it first did.
func (s *stuckCleanups) first(uid types.UID, step step, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()

	for of, known := range s.known {
		if now.Sub(known.last) >= forgetAfter {
			delete(s.known, of)
		}
	}

	if s.known == nil {
		s.known = map[cleanupStep]failing{}
	}

	of := cleanupStep{uid, step}

	known, found := s.known[of]
	if !found {
		known.first = now
	}

	known.last = now
	s.known[of] = known

	return known.first
}

// over drops the record of a step that succeeded.
func (s *stuckCleanups) over(uid types.UID, step step) {
	s.mu.Lock()
	defer s.mu.Unlock()

	delete(s.known, cleanupStep{uid, step})
}
