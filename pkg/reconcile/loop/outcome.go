package loop

import (
	"fmt"
	"time"
)

// verdict is the effect of an Outcome on the phases after it.
type verdict int

const (
	verdictNone verdict = iota // the zero Outcome: a mistake of the phase
	verdictContinue
	verdictWait
	verdictStall
	verdictBlock
	verdictPostpone
	verdictPersist
	verdictNote
	verdictSkip
)

// String returns the name of the verdict for logs.
func (v verdict) String() string {
	switch v {
	case verdictContinue:
		return "continue"
	case verdictWait:
		return "wait"
	case verdictStall:
		return "stall"
	case verdictBlock:
		return "block"
	case verdictPostpone:
		return "postpone"
	case verdictPersist:
		return "persist"
	case verdictNote:
		return "note"
	case verdictSkip:
		return "skip"
	case verdictNone:
	}

	return "none"
}

// Outcome is the result of a phase. Make it with Continue, Note, Skip, Wait, Overtaken, Stall, Block, Postpone or
// Persist.
type Outcome struct {
	verdict   verdict
	reason    string
	message   string
	after     time.Duration
	overtaken bool
}

// Continue means that the phase's condition is true; the next phase runs.
func Continue(reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictContinue, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Wait means that something has to happen first, without a person's help. The object is reconciled again after the
// given time at the latest; 0 means that a watch should trigger it, with the kind's interval as the safety net. A
// negative time is one that has come while the run was at work, so the next run follows at once.
func Wait(after time.Duration, reason, format string, args ...any) Outcome {
	if after < 0 {
		after = atOnce
	}

	return Outcome{verdict: verdictWait, reason: reason, message: fmt.Sprintf(format, args...), after: after}
}

// atOnce is the shortest pause: 0 has a meaning of its own.
const atOnce = time.Millisecond

// Overtaken means that somebody else changed the data first, so the run has to start again: like Wait, with a short
// pause that grows while this happens repeatedly.
func Overtaken(reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictWait, reason: reason, message: fmt.Sprintf(format, args...), overtaken: true}
}

// Stall means that nothing goes on until a person acts. The object is still reconciled at its interval, because the
// remedy may happen elsewhere.
func Stall(reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictStall, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Block is what a deletion waits for: like Wait, and the condition DeletionBlocked shows it. In a phase that is not of
// a deletion it is a Wait.
func Block(after time.Duration, reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictBlock, reason: reason, message: fmt.Sprintf(format, args...), after: after}
}

// Postpone means that the result is not known yet and will be in a moment: the object is reconciled again after the
// given time, and its status stays as it is. It is for the first moments of a process, or of an outage, which would
// otherwise write every status twice, and of an object that is about to have something to show. It must not be returned
// for long.
func Postpone(after time.Duration, reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictPostpone, reason: reason, message: fmt.Sprintf(format, args...), after: after}
}

// Persist means that the status has to be stored before the phase goes on: the phase is about to do something remote,
// and after a crash the status is all that is known of it. The phase or Report has put what is needed there. The object
// is reconciled again as soon as the cache has that status; an earlier run would find the old status, and return
// Persist again.
func Persist(reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictPersist, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Note means that the phase's condition is not as it should be, but that this does not keep the object from being
// Ready: the next phase runs. It is for findings that a user only wants to see.
func Note(reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictNote, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Skip means that the phase does not apply: its condition is Unknown, the next phase runs, and Ready has the result of
// the phase before.
func Skip(reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictSkip, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Proceed is for a step of a phase that found nothing in the way: the phase goes on, and says itself what came of it. It has
// no reason, so it is not the outcome of a phase.
func Proceed() Outcome { return Outcome{verdict: verdictContinue} }

// Within returns the same outcome with a time after which the object is reconciled again at the latest; 0 changes
// nothing.
func (o Outcome) Within(after time.Duration) Outcome {
	if after > 0 && (o.after == 0 || after < o.after) {
		o.after = after
	}

	return o
}

// Postponed returns a Postpone instead of the outcome, which is not to be shown yet.
func (o Outcome) Postponed(after time.Duration) Outcome {
	return Postpone(after, o.reason, "%s", o.message)
}

// Reason returns the reason of the outcome.
func (o Outcome) Reason() string { return o.reason }

// Message returns the message of the outcome.
func (o Outcome) Message() string { return o.message }

// Continues reports whether the next phase runs.
func (o Outcome) Continues() bool {
	return o.verdict == verdictContinue || o.verdict == verdictNote || o.verdict == verdictSkip
}

// Stalls reports whether a person has to act.
func (o Outcome) Stalls() bool { return o.verdict == verdictStall }

// Blocks reports whether a deletion is blocked.
func (o Outcome) Blocks() bool { return o.verdict == verdictBlock }

// Postpones reports whether the result is not known yet.
func (o Outcome) Postpones() bool { return o.verdict == verdictPostpone }

// Persists reports whether the status has to be stored before the phase goes on.
func (o Outcome) Persists() bool { return o.verdict == verdictPersist }

// IsOvertaken reports whether the pause grows from one such outcome to the next.
func (o Outcome) IsOvertaken() bool { return o.overtaken }

// After returns how long to wait at most; 0 if the interval decides.
func (o Outcome) After() time.Duration { return o.after }
