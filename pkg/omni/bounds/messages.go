package bounds

import (
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// Bounds of one message, in bytes, after decompression.
const (
	// MaxAnswer is the size of one message of the resource API, in bytes: one resource. Omni's own storage accepts less.
	MaxAnswer = 4 << 20
	// StreamWindow is how much of a stream may arrive before the reader consumes it, in bytes.
	StreamWindow = 64 << 10
)

// TooLong is the error for one message that is longer than its call accepts.
type TooLong struct{ Limit int }

// Error implements error.
func (e *TooLong) Error() string {
	return fmt.Sprintf("one answer of Omni is longer than %d KiB", e.Limit>>10)
}

// Is makes errors.Is(err, ErrTooMuchData) true.
func (e *TooLong) Is(target error) bool { return target == omni.ErrTooMuchData }
