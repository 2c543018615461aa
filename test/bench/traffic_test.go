package main

import "testing"

// TestTrafficFigures: memory has grown if the last quarter's largest is above the first quarter's.
func TestTrafficFigures(t *testing.T) {
	mib := func(sizes ...uint64) []memory {
		var samples []memory
		for _, size := range sizes {
			samples = append(samples, memory{resident: (size + 10) * mebibyte, file: 10 * mebibyte})
		}

		return samples
	}

	figures := trafficFigures("traffic", map[string][]memory{
		"omni-apiserver":  mib(90, 100, 999, 999, 999, 999, 110, 150),
		"omni-controller": mib(40),
	})

	want := []float64{100, 150, 1.5, 40, 40, 1}
	if len(figures) != len(want) {
		t.Fatalf("%d figures", len(figures))
	}

	for i, figure := range figures {
		if figure.Value != want[i] {
			t.Errorf("%s: %v, want %v", figure.Name, figure.Value, want[i])
		}
	}

	if got := trafficFigures("traffic", nil); got[0].Value != 0 {
		t.Errorf("without samples: %v", got[0])
	}
}
