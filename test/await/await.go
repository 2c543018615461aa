// Package await waits, in tests, for a state.
//
// A busy machine is no failure: Limit ends a test that would hang, and is no bound on the product. A test that bounds how long
// something takes compares with the product's own deadline.
package await

import (
	"context"
	"testing"
	"time"
)

// Limit is how long a test waits before it gives up.
const Limit = 5 * time.Minute

// Until waits until done returns true.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()

	for deadline := time.Now().Add(Limit); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", Limit, what)
		}
	}
}

// Receive waits for the next value of a channel. A channel that is closed has the zero value.
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()

	select {
	case value := <-from:
		return value
	case <-time.After(Limit):
		t.Fatalf("not within %s: %s", Limit, what)
	}

	return *new(T)
}

// Context returns a context for a call that might never end. It ends with the test at the latest.
func Context(t testing.TB) context.Context {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), Limit)
	t.Cleanup(cancel)

	return ctx
}
