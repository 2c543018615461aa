package render

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// work is what a worker is given to do, in words.
type work struct {
	process string // what the worker is called that does it
	slow    string // what it means if it takes too long, and what helps
	deep    string // what it means if it takes too much stack
	large   string // what it means if it takes too much memory, and what helps
	// first is work whose result others rely on: only a worker does it that has read nothing foreign before.
	first bool
}

//nolint:gochecknoglobals // constants, but Go has none of this type
var (
	rendering = work{
		process: "the process that rendered the chart",
		slow: "rendering it did not end within %s: a template may loop without end, or the cluster answers its lookups slowly; " +
			"correct the chart or its values, or raise --render-timeout of omni-controller",
		deep:  "a template calls itself, or prints a value that contains itself, without end; correct the chart or its values",
		large: "rendering it takes more than %d MiB of memory; correct the chart or its values, or raise --render-memory of omni-controller",
	}
	readingIndex = work{
		process: "the process that read it",
		slow:    "reading it did not end within %s; remove old versions from the repository, or raise --render-timeout of omni-controller",
		deep:    "it is nested without end; have the repository write a new one",
		large:   "reading it takes more than %d MiB of memory; remove old versions from the repository, or raise --render-memory of omni-controller",
	}
	checkingProvenance = work{
		process: "the process that read it",
		slow:    "checking it did not end within %s; look at it and at the keyring, or raise --render-timeout of omni-controller",
		deep:    "it, or the keyring, is nested without end; look at both",
		large:   "checking it takes more than %d MiB of memory; look at it and at the keyring, or raise --render-memory of omni-controller",
		first:   true,
	}
)

// tooSlow is what work gets that does not end in time.
func (w *work) tooSlow(limit time.Duration) error { return refused(w.slow, limit) }

// named puts the process before an error that says what became of it.
func (w *work) named(err error) error {
	if errors.Is(err, errConfused) || errors.Is(err, errDied) {
		return fmt.Errorf("%s %w", w.process, err)
	}

	return err
}

// ReadIndex has a worker read the index of a chart repository, when one is free. Errors are *Failure, of StageSize if
// the index is too large, and otherwise as those of Render.
func (p *Pool) ReadIndex(ctx context.Context, group string, text []byte) (*Index, error) {
	if len(text) > maxRequest {
		return nil, refused("it has more than %d MiB", maxRequest>>20)
	}

	var index *Index

	err := p.do(ctx, group, &readingIndex, func(_ context.Context, worker *process) (err error) {
		index, err = worker.readIndex(text)

		return err
	}, nil)

	return index, err
}

func (p *process) readIndex(text []byte) (*Index, error) {
	if err := WriteFrame(p.to, KindIndex, text); err != nil {
		return nil, err
	}

	for index := NewIndex(); ; {
		kind, content, err := ReadFrame(p.from)
		if err != nil {
			return nil, err
		}

		switch kind {
		case KindEntries:
			if err := index.readEntries(content); err != nil {
				return nil, err
			}
		case KindDone:
			return index, nil
		case KindFailure:
			return nil, parseFailure(content)
		default:
			return nil, errConfused
		}
	}
}

// CheckProvenance has a worker check with a keyring that a provenance file is signed and is of a chart. The worker is
// one that has read nothing before. Errors are *Failure, which says why the file does not count, and otherwise as those
// of Render.
func (p *Pool) CheckProvenance(ctx context.Context, group string, wanted Provenance, keyring, file []byte) error {
	about, err := json.Marshal(wanted)
	if err != nil {
		return fmt.Errorf("write what is checked: %w", err)
	}

	if len(keyring) > maxRequest || len(file) > maxRequest || len(about) > maxMessage {
		return refused("with the keyring it has more than %d MiB", maxRequest>>20)
	}

	return p.do(ctx, group, &checkingProvenance, func(_ context.Context, worker *process) error {
		return worker.checkProvenance(about, keyring, file)
	}, nil)
}

func (p *process) checkProvenance(about, keyring, file []byte) error {
	if err := errors.Join(WriteFrame(p.to, KindProvenance, about), WriteFrame(p.to, KindKeyring, keyring), WriteFrame(p.to, KindSignature, file)); err != nil {
		return err
	}

	kind, content, err := ReadFrame(p.from)

	switch {
	case err != nil:
		return err
	case kind == KindDone:
		return nil
	case kind == KindFailure:
		return parseFailure(content)
	default:
		return errConfused
	}
}

// EncodeValues writes values so that DecodeValues restores them with the types of
// their numbers: templates print, compare and compute with int64, float64 and
// json.Number differently, and plain JSON writes 1.0 as 1.
func EncodeValues(values map[string]any) ([]byte, error) {
	text, err := json.Marshal(marked(values))
	if err != nil {
		return nil, fmt.Errorf("write the values: %w", err)
	}

	return text, nil
}

// marked is a copy of a value whose floats are written with a point or an exponent.
func marked(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(typed))
		for key, member := range typed {
			copied[key] = marked(member)
		}

		return copied
	case []any:
		copied := make([]any, len(typed))
		for i, member := range typed {
			copied[i] = marked(member)
		}

		return copied
	case float64:
		text := strconv.FormatFloat(typed, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}

		return json.Number(text)
	default:
		return value
	}
}

// DecodeValues reads what EncodeValues has written.
func DecodeValues(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	values := map[string]any{}
	if err := decoder.Decode(&values); err != nil {
		return nil, errors.New("the values are no JSON object")
	}

	restored, _ := RestoreNumbers(values).(map[string]any)

	return restored, nil
}

// RestoreNumbers turns the numbers in a decoded value into what templates can compute with, in place. No integer loses a digit by
// that; a number with a fraction or an exponent may.
func RestoreNumbers(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		for key, member := range typed {
			typed[key] = RestoreNumbers(member)
		}
	case []any:
		for i, member := range typed {
			typed[i] = RestoreNumbers(member)
		}
	case json.Number:
		if integer, err := strconv.ParseInt(typed.String(), 10, 64); err == nil {
			return integer
		}

		if strings.ContainsAny(typed.String(), ".eE") {
			if float, err := typed.Float64(); err == nil {
				return float
			}
		}
	}

	return value
}

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
