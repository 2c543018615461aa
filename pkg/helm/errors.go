package helm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
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

// notesFile is the name of the file that is no manifest.
const notesFile = "NOTES.txt"

// manifests is what is known of the text of a chart's files.
type manifests struct {
	size foreign.Size
	// name is that of the file that is wrong, or with which they are too much, and err what is wrong.
	name string
	err  error
}

// checkOutput checks what a chart prints as Helm will separate it. All of it happens in this process, so it is bounded.
func checkOutput(ctx context.Context, files map[string]string) manifests {
	texts := map[string]string{}

	for name, text := range files {
		// What Helm takes out now could join the parts of something else, which nobody has checked.
		if strings.Contains(text, noValue) {
			return manifests{name: name, err: errNoValue}
		}

		if strings.HasSuffix(name, notesFile) || strings.HasPrefix(path.Base(name), "_") {
			continue
		}

		// Helm separates documents in its own way, and more often than YAML does.
		documents := releaseutil.SplitManifests(text)
		texts[name] = strings.Join(slices.Collect(maps.Values(documents)), drift.ManifestSeparator)
	}

	size, name, err := drift.CheckManifests(ctx, texts)

	return manifests{size: size, name: name, err: err}
}

// errNoValue is a file that prints what Helm takes out.
var errNoValue = errors.New("prints " + noValue + " inside of " + noValue)

// checkManifests refuses what Helm must not parse in this process.
func (c *Client) checkManifests(ctx context.Context, request Request, files map[string]string, found manifests) error {
	switch {
	case errors.Is(found.err, errNoValue):
		return outOfBounds("chart "+request.Chart.String(), &render.RefusedError{Why: found.name + " " + found.err.Error()})
	case !errors.Is(found.err, foreign.ErrSyntax):
		return outOfBounds("chart "+request.Chart.String()+": what "+found.name+" prints", found.err)
	}

	// Helm says where the fault is.
	if err := c.target.Renderers.Explain(ctx, c.target.Tenant, found.name, files[found.name]); err != nil {
		return explainRendering(request.Chart, err)
	}

	return fmt.Errorf("YAML parse error on %s: %w", found.name, found.err)
}

// outOfBounds is the error of something that must not be parsed here; nil if err is.
func outOfBounds(what string, err error) error {
	var (
		limit   *foreign.LimitError
		refusal *render.RefusedError
	)

	switch {
	case err == nil:
		return nil
	case errors.As(err, &limit), errors.As(err, &refusal):
		return &Error{Reason: ReasonRefused, Message: fmt.Sprintf("%s: %s", what, err)}
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}

// Verbosity of Helm's records in our log.
const (
	infoVerbosity  = 1
	debugVerbosity = 2
)

// logHandler sends Helm's records to our log, without what came from a Secret,
// and remembers the last error: some of Helm's own errors leave the cause out.
type logHandler struct {
	log    logr.Logger
	values *redactor
	last   *lastError
	attrs  []slog.Attr
}

type lastError struct {
	mu   sync.Mutex
	text string
}

func (l *lastError) get() string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text
}

// Enabled implements slog.Handler. Debug records are looked at for their errors.
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h *logHandler) Handle(_ context.Context, record slog.Record) error {
	var pairs []any

	add := func(attr slog.Attr) bool {
		value := h.values.redact(attr.Value.String())
		pairs = append(pairs, attr.Key, value)

		if attr.Key == "error" {
			h.last.mu.Lock()
			h.last.text = value
			h.last.mu.Unlock()
		}

		return true
	}

	for _, attr := range h.attrs {
		add(attr)
	}

	record.Attrs(add)

	log := h.log

	switch {
	case record.Level < slog.LevelInfo:
		log = log.V(debugVerbosity)
	case record.Level < slog.LevelWarn:
		log = log.V(infoVerbosity)
	}

	log.Info("helm: "+h.values.redact(record.Message), pairs...)

	return nil
}

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	copied := *h
	copied.attrs = append(append([]slog.Attr(nil), h.attrs...), attrs...)

	return &copied
}

// WithGroup implements slog.Handler; groups are left out.
func (h *logHandler) WithGroup(string) slog.Handler { return h }
