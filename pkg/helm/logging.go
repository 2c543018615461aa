package helm

import (
	"context"
	"log/slog"
	"sync"

	"github.com/go-logr/logr"
)

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
