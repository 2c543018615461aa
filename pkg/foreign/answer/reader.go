package answer

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
)

// Limits bound one answer.
type Limits struct {
	// Bytes is how long it may be when it is not compressed, in bytes.
	Bytes int64
	// Memory is what it may become when it is decoded, as it is estimated, in bytes. 0 is
	// for an answer that is no JSON and is not decoded.
	Memory int64
	// Small is the memory up to which an answer does not count as large, in bytes.
	Small int64
	// Stream is for a sequence of JSON objects without an end: the limits are for each.
	Stream bool
}

// holdTime is how long one large answer may be read, so that one that does not end gives
// its memory back.
const holdTime = 30 * time.Second

// large bounds the large answers that the process reads at the same time, of every kind of server, in bytes. Those with one key
// have half of it, so that one server never takes all.
//
//nolint:gochecknoglobals // the memory is the process's, too
var large = limiter.New(limiter.Limits[any]{PerKey: 32 << 20, Total: 64 << 20})

// LimitError says that an answer exceeds a limit. Its text continues a sentence that
// begins with the name of the server.
type LimitError struct {
	// Limit is how much was allowed, in bytes, or levels if Deep.
	Limit int64
	// Memory says that the limit is one of memory, Deep that it is one of nesting.
	Memory, Deep bool
}

// Error implements error.
func (e *LimitError) Error() string {
	switch {
	case e.Deep:
		return fmt.Sprintf("answers with objects in more than %d levels", e.Limit)
	case e.Memory:
		return "answers with so many values that they would take more than " + size(e.Limit) + " of memory"
	default:
		return "answers with more than " + size(e.Limit)
	}
}

func size(bytes int64) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}

	return fmt.Sprintf("%d KiB", bytes>>10)
}

// Reader passes an answer on while it stays within its limits. It must be closed, and may
// be used by one goroutine; Close may come from another.
type Reader struct {
	ctx    context.Context //nolint:containedctx // of the request, whose answer it is
	body   io.ReadCloser
	limits Limits
	key    any
	meter  meter
	err    error

	mu       sync.Mutex
	giveBack func() // the memory of a large answer; nil if it has none
	closed   bool
}

// NewReader bounds a body. A large answer waits, until ctx ends, for its part of the memory that large answers of the process
// have; those with one key, which may be any that can be compared, have half of it.
func NewReader(ctx context.Context, body io.ReadCloser, limits Limits, key any) *Reader {
	return &Reader{ctx: ctx, body: body, limits: limits, key: key}
}

// Read implements io.Reader. Its errors are those of the body, a *LimitError, and that of
// the context.
func (r *Reader) Read(buffer []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}

	n, err := r.body.Read(buffer)
	if r.err = r.count(buffer[:n]); r.err != nil {
		return 0, r.err
	}

	return n, err // io.EOF must stay io.EOF
}

// Close implements io.Closer.
func (r *Reader) Close() error {
	r.release(true)

	return r.body.Close() // the caller is net/http
}

// count goes on with the answer.
func (r *Reader) count(text []byte) error {
	for len(text) > 0 {
		taken, closed := r.meter.add(text)
		text = text[taken:]

		if err := r.check(); err != nil {
			return err
		}

		if closed && r.limits.Stream {
			r.meter = meter{}
			r.release(false)
		}
	}

	return nil
}

func (r *Reader) check() error {
	m, limits := &r.meter, r.limits
	decoded := limits.Memory > 0

	switch {
	case m.bytes > limits.Bytes:
		return &LimitError{Limit: limits.Bytes}
	case decoded && m.depth > maxDepth:
		return &LimitError{Limit: maxDepth, Deep: true}
	case decoded && m.memory > limits.Memory:
		return &LimitError{Limit: limits.Memory, Memory: true}
	case decoded && m.memory > limits.Small, !decoded && m.bytes > limits.Small:
		return r.enter()
	default:
		return nil
	}
}

// enter takes the memory of a large answer, once.
func (r *Reader) enter() error {
	r.mu.Lock()
	entered := r.giveBack != nil
	r.mu.Unlock()

	if entered {
		return nil
	}

	release, err := large.Acquire(r.ctx, r.key, r.limits.Bytes)
	if err != nil {
		return fmt.Errorf("other large answers are being read, this one waited in vain: %w", err)
	}

	// Reading from a body that is closed ends with an error.
	late := time.AfterFunc(holdTime, func() { _ = r.Close() })
	giveBack := func() { release(); late.Stop() }

	r.mu.Lock()
	defer r.mu.Unlock()

	if r.closed {
		giveBack()

		return io.ErrClosedPipe
	}

	r.giveBack = giveBack

	return nil
}

// release gives the memory back.
func (r *Reader) release(closed bool) {
	r.mu.Lock()
	giveBack := r.giveBack
	r.giveBack, r.closed = nil, r.closed || closed
	r.mu.Unlock()

	if giveBack != nil {
		giveBack()
	}
}
