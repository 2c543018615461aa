package requestbody

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/registry/memory"
)

// Arriving is the memory that bodies may take together while they arrive and wait for their part of Budget, in bytes. It is a
// part of its own: bodies that hold some and wait for more of the same would wait for each other.
const Arriving = 32 << 20

const (
	// uncharged is how long a body may be that takes nothing of Arriving: most writes never wait. Priority and fairness lets
	// 600 requests in, which have 10 MiB of these.
	uncharged = 16 << 10

	// graceTime is how long a body may take to arrive, however short it is, and bytesPerSecond how many it has to have for
	// each further second.
	graceTime      = 10 * time.Second
	bytesPerSecond = 64 << 10
)

// charge is what a body has of a budget while it arrives.
type charge struct {
	budget *memory.Budget
	bytes  int64
	parts  []func()
}

// upTo charges so many bytes in all.
func (c *charge) upTo(ctx context.Context, bytes int64) error {
	if bytes <= max(c.bytes, uncharged) {
		return nil
	}

	part, err := c.budget.Take(ctx, bytes-c.bytes)
	if err != nil {
		return busy()
	}

	c.bytes, c.parts = bytes, append(c.parts, part)

	return nil
}

func (c *charge) giveBack() {
	for _, part := range c.parts {
		part()
	}

	c.bytes, c.parts = 0, nil
}

// receive reads a body. Its announced length is charged before the first byte is read; what comes without a length is charged as
// it comes. A slow sender is cut. Errors with a status are for the client, and others are those of reading.
func (b bodies) receive(r *http.Request, held *charge) ([]byte, error) {
	length := r.ContentLength
	if length > b.maxBytes {
		return nil, b.tooLong()
	}

	ctx, cancel := context.WithTimeout(r.Context(), b.wait)
	defer cancel()

	if err := held.upTo(ctx, length); err != nil {
		return nil, err
	}

	if length < 0 {
		length = b.maxBytes
	}

	within := b.grace + time.Duration(length/bytesPerSecond)*time.Second
	setDeadline(r, time.Now().Add(within))

	body, err := b.read(ctx, r, held)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout,
			Message: fmt.Sprintf("%d bytes of the request body arrived within %s, which is too slow: send it over a faster connection", len(body), within),
		}}
	}

	setDeadline(r, time.Time{})

	return body, err
}

// read reads a body into memory that was charged.
func (b bodies) read(ctx context.Context, r *http.Request, held *charge) ([]byte, error) {
	// One more than announced, to see the end.
	body := make([]byte, 0, max(r.ContentLength, 0)+1)

	for {
		if len(body) == cap(body) {
			size := min(max(2*int64(cap(body)), uncharged), b.maxBytes+1)
			if err := held.upTo(ctx, size); err != nil {
				return nil, err
			}

			body = append(make([]byte, 0, size), body...)
		}

		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]

		switch {
		case int64(len(body)) > b.maxBytes:
			return nil, b.tooLong()
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return body, err
		}
	}
}

// tooLong is the answer to a body that is too long, in the words of the library.
func (b bodies) tooLong() error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", b.maxBytes))
}

// deadline sets until when the body of a request can be read. It does nothing once the handler has returned: the library goes on
// with a request whose time is over.
type deadline struct {
	mu     sync.Mutex
	answer *http.ResponseController // nil: it is over
}

// deadlineKey is the context key of a request's deadline.
type deadlineKey struct{}

// withDeadline gives each request a deadline that is not set yet. Of a request whose body nobody will read, such as a watch, it
// drops the body: HTTP/2 would keep it for as long as the watch lasts.
func withDeadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !mayHaveBody(r) {
			if r.ProtoMajor > 1 && r.Body != nil {
				_ = r.Body.Close()
			}

			next.ServeHTTP(w, r)

			return
		}

		d := &deadline{answer: http.NewResponseController(w)}
		defer func() {
			d.mu.Lock()
			defer d.mu.Unlock()

			d.answer = nil
		}()

		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), deadlineKey{}, d)))
	})
}

// setDeadline sets the deadline of a request's body; the zero time removes it.
func setDeadline(r *http.Request, at time.Time) {
	d, found := r.Context().Value(deadlineKey{}).(*deadline)
	if !found {
		return
	}

	d.mu.Lock()
	defer d.mu.Unlock()

	if d.answer != nil {
		_ = d.answer.SetReadDeadline(at) // every connection can
	}
}
