package main

import (
	"math"
	"slices"
	"time"
)

// samples are durations of one kind, in the order they were taken.
type samples []time.Duration

// percentile returns the smallest sample that at least p percent of the samples do not exceed
// (nearest rank; p from 0 to 100). It is zero if there are none.
func (s samples) percentile(p float64) time.Duration {
	if len(s) == 0 {
		return 0
	}

	sorted := slices.Sorted(slices.Values(s))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))

	return sorted[min(max(rank, 1), len(sorted))-1]
}

// median returns the middle value, or the mean of the two in the middle. It is zero if there are
// none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}

	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2

	if len(sorted)%2 == 1 {
		return sorted[middle]
	}

	return (sorted[middle-1] + sorted[middle]) / 2
}

// ratios divides pair by pair, as far as both lists go; a pair without a divisor is left out.
func ratios(numerators, denominators []float64) []float64 {
	var out []float64

	for i := range min(len(numerators), len(denominators)) {
		if denominators[i] != 0 {
			out = append(out, numerators[i]/denominators[i])
		}
	}

	return out
}
