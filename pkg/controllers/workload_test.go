package controllers

import "testing"

// The workload clusters of one namespace leave workers to the others, if there is more than one.
func TestOfNamespace(t *testing.T) {
	for workers, want := range map[int]int{1: 1, 2: 1, 4: 3, 8: 6, 32: 24} {
		if got := ofNamespace(workers); got != want {
			t.Errorf("of %d workers a namespace keeps %d, want %d", workers, got, want)
		}
	}
}
