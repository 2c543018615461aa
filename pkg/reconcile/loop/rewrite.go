package loop

import "time"

// rewriteInterval is the shortest time between two writes of the same content.
const rewriteInterval = time.Minute

// RewritePause returns how long to wait before an object writes again what it wrote at a time and somebody changed since.
// Each write starts the next run, so that without the pause a writer who changes it back at once would make a loop. Whoever
// asks for a run gets the write at once.
func RewritePause(object Object, written, now time.Time) time.Duration {
	if object.GetReconcileStatus().LastHandledReconcileAt != RequestedAt(object) {
		return 0
	}

	// A write in the future is one by a clock that was ahead.
	if ago := now.Sub(written); ago >= 0 {
		return max(0, rewriteInterval-ago)
	}

	return 0
}
