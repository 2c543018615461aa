package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPercentile(t *testing.T) {
	hundred := make(samples, 0, 100)
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i)) // 100 down to 1
	}

	for name, test := range map[string]struct {
		samples samples
		p       float64
		want    time.Duration
	}{
		"none":                {nil, 50, 0},
		"one":                 {samples{7}, 99, 7},
		"lowest":              {samples{3, 1, 2}, 0, 1},
		"middle of three":     {samples{3, 1, 2}, 50, 2},
		"middle of four":      {samples{4, 3, 1, 2}, 50, 2},
		"highest":             {samples{3, 1, 2}, 100, 3},
		"p50 of a hundred":    {hundred, 50, 50},
		"p99 of a hundred":    {hundred, 99, 99},
		"p99 of three is max": {samples{3, 1, 2}, 99, 3},
		"negative samples":    {samples{-5, 10}, 50, -5},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.samples.percentile(test.p); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}

	if hundred[0] != 100 {
		t.Error("the samples were sorted in place")
	}
}

func TestMedian(t *testing.T) {
	for name, test := range map[string]struct {
		values []float64
		want   float64
	}{
		"none": {nil, 0},
		"one":  {[]float64{2}, 2},
		"odd":  {[]float64{9, 1, 3}, 3},
		"even": {[]float64{9, 1, 3, 5}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			if got := median(test.values); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestRatios(t *testing.T) {
	got := ratios([]float64{1, 2, 3, 4}, []float64{2, 0, 1})
	if diff := cmp.Diff([]float64{0.5, 3}, got); diff != "" {
		t.Error(diff)
	}
}
