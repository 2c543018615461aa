package render

import (
	"errors"
	"fmt"
)

// RefusedError is a chart that a worker did not survive, or whose output is out of
// bounds: the next attempt would end the same way. Its text continues a sentence
// that begins with the chart's name, and holds nothing of the chart.
type RefusedError struct {
	// Why says what the chart does, and what to do about it.
	Why string
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Why }

// ErrUnavailable is wrapped by errors that say nothing about the chart: there is no
// worker. The same may work a while later.
var ErrUnavailable = errors.New("charts cannot be rendered now")

// errDied is wrapped by errors of workers that ended for a reason that is not known.
var errDied = errors.New("the process that rendered the chart ended before it was done")

func refused(format string, args ...any) *RefusedError {
	return &RefusedError{Why: fmt.Sprintf(format, args...)}
}
