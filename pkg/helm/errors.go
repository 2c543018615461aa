package helm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Reason says what kind of failure an Error is.
type Reason string

// The reasons.
const (
	// ReasonFailed: the action was done and failed, or the chart does not fit.
	ReasonFailed Reason = "Failed"
	// ReasonTimeout: the action did not end within its timeout.
	ReasonTimeout Reason = "Timeout"
	// ReasonInterrupted: the controller stopped during the action; it is begun again.
	ReasonInterrupted Reason = "Interrupted"
	// ReasonForbidden: the user of the kubeconfig may not do something that the action needs.
	ReasonForbidden Reason = "Forbidden"
	// ReasonUnreachable: the cluster does not answer.
	ReasonUnreachable Reason = "Unreachable"
	// ReasonRefused: the chart cannot be rendered within its bounds. The next attempt with the same chart and
	// values would end the same way.
	ReasonRefused Reason = "Refused"
	// ReasonUnavailable: this process cannot render charts now; it has nothing to do with the chart.
	ReasonUnavailable Reason = "Unavailable"
	// ReasonRecord: Helm's record of the release is larger than what is read, or damaged. Nothing was changed.
	ReasonRecord Reason = "Record"
)

// Error is why an action failed. Its text is fit for conditions.
type Error struct {
	// Reason is the kind of failure.
	Reason Reason
	// Message says what failed and why.
	Message string
	// Still is closed when Helm has returned after all; nil unless Helm did not return. Until then
	// the action has no effect any more, but goes on using a processor.
	Still <-chan struct{}
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// endlessError is an action that does not return.
type endlessError struct{ returned <-chan struct{} }

// Error says what the reason may be.
func (e *endlessError) Error() string {
	return "Helm does not return"
}

// unusableError is a chart that is not the one that is meant, or none. What made
// the request knows what to say of it.
type unusableError struct{ cause error }

// Error implements error.
func (e *unusableError) Error() string { return e.cause.Error() }

// unwrittenError is a record that could not be written because the cluster did not answer.
type unwrittenError struct {
	record string
	cause  error
}

// Error says what follows from it.
func (e *unwrittenError) Error() string {
	return fmt.Sprintf("its result could not be written into Helm's record, Secret %s in the workload cluster, so it is done again, with its hooks: %s", e.record, e.cause)
}

// Unwrap returns the cause.
func (e *unwrittenError) Unwrap() error { return e.cause }

// notNow reports whether the cluster has answered that it cannot do something at the moment.
func notNow(err error) bool {
	var told apierrors.APIStatus
	if !errors.As(err, &told) {
		return false
	}

	code := told.Status().Code

	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

// passes reports whether a call failed for a reason that may pass by itself, so that the same call may succeed soon.
func passes(err error) bool {
	var network net.Error

	return notNow(err) || errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// classify makes an *Error of what Helm or the cluster said while doing something.
func classify(doing string, err error, secrets *redactor) error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}

	var refused *RecordRefusedError
	if errors.As(err, &refused) {
		return &Error{Reason: ReasonRecord, Message: refused.Message}
	}

	return &Error{Reason: reasonOf(err), Message: fmt.Sprintf("%s: %s", doing, secrets.redact(err.Error()))}
}

func reasonOf(err error) Reason {
	var network net.Error

	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), strings.Contains(err.Error(), "is forbidden: User"):
		return ReasonForbidden
	case strings.Contains(err.Error(), "cluster unreachable"), strings.Contains(err.Error(), "cluster reachability check failed"):
		return ReasonUnreachable
	case errors.Is(err, context.DeadlineExceeded):
		return ReasonTimeout
	case errors.Is(err, context.Canceled):
		return ReasonInterrupted
	case errors.As(err, &network):
		return ReasonUnreachable
	default:
		return ReasonFailed
	}
}
