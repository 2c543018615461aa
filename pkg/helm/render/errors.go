package render

import (
	"errors"
	"fmt"
)

// RefusedError is a chart, or another text, that a worker did not survive, or whose
// output is out of bounds: the next attempt would end the same way. Its text continues
// a sentence that begins with the chart's name, and holds nothing of the chart.
type RefusedError struct {
	// Why says what the chart does, and what to do about it.
	Why string
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Why }

// ErrUnavailable is wrapped by errors that say nothing about the chart: there is no
// worker. The same may work a while later.
var ErrUnavailable = errors.New("charts cannot be rendered now")

// ErrBusy is wrapped by errors of work that waited in vain for a worker.
var ErrBusy = errors.New("wait for a process that renders the chart")

// errDied is wrapped by errors of workers that ended for a reason that is not known.
// The text continues a sentence that begins with the process.
var errDied = errors.New("ended before it was done")

// errConfused is a worker that does not keep to the protocol.
var errConfused = errors.New("sent something unexpected")

func refused(format string, args ...any) *RefusedError {
	return &RefusedError{Why: fmt.Sprintf(format, args...)}
}
