package main

import "testing"

// Every machine that is in no cluster is in one of the Omnis.
func TestSharesAddUp(t *testing.T) {
	for _, test := range []struct{ number, count int }{{0, 1}, {1, 1}, {3, 2}, {5, 5}, {7, 3}, {2, 5}} {
		sum, smallest, largest := 0, test.number, 0

		for i := range test.count {
			share := shareOf(test.number, test.count, i)
			sum, smallest, largest = sum+share, min(smallest, share), max(largest, share)
		}

		if sum != test.number || largest-smallest > 1 {
			t.Errorf("%d in %d: %d, from %d to %d", test.number, test.count, sum, smallest, largest)
		}
	}
}

// The clusters of a fleet are dealt out in turn, whatever their number was when the fleet grew.
func TestClustersAreDealtOut(t *testing.T) {
	fleet := make(omnis, 3)

	for i, want := range []string{"omni", "omni-1", "omni-2", "omni", "omni-1"} {
		if got := fleet.connectionOf(i); got != want {
			t.Errorf("cluster %d: %s, want %s", i, got, want)
		}
	}
}
