package plan

import (
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// ChangeError is one change that failed.
type ChangeError struct {
	// Change is the change that was tried.
	Change Change
	// Class is the class of the cause.
	Class omni.Class
	cause error
	// advice says what to do about the cause; empty if Omni's own words are enough.
	advice string
}

// Error implements error. The text is bounded and safe for conditions.
func (e *ChangeError) Error() string {
	text := fmt.Sprintf("%s %s %q: %s", e.Change.Action, omni.KindOf(e.Change.Type), e.Change.ID, omni.Message(e.cause))
	if e.advice != "" {
		text += "; " + e.advice
	}

	return text
}

// Unwrap returns the raw cause, which Classify can sort.
func (e *ChangeError) Unwrap() error { return e.cause }

// Classified returns the class of the cause, for Classify: the text has lost the code.
func (e *ChangeError) Classified() omni.Class { return e.Class }
