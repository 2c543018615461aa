package e2e

import "testing"

// slow is the first line of a test that kills our programs, or that waits for a minute. `make test` leaves it out,
// `make test-slow` runs it: hack/slow-tests.sh finds it by this line.
func slow(t *testing.T) {
	t.Helper()

	if testing.Short() {
		t.Skip("make test-slow runs it")
	}
}
