package consent

import (
	"math"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestSettle(t *testing.T) {
	const settleTime = 10 * time.Second

	start := time.Unix(1000, 0)

	// Each step is a plan with its destructive changes, some seconds after the start.
	type step struct {
		at      time.Duration
		uid     types.UID
		keys    []string
		settled bool
		left    time.Duration
		deleted time.Duration // when a document was deleted last
	}

	for name, steps := range map[string][]step{
		"unchanged for the settle time": {
			{0, "u", []string{"a", "b"}, false, 10 * time.Second, 0},
			{4 * time.Second, "u", []string{"b", "a"}, false, 6 * time.Second, 0},
			{9999 * time.Millisecond, "u", []string{"a", "b"}, false, time.Millisecond, 0},
			{10 * time.Second, "u", []string{"a", "b"}, true, 0, 0},
		},
		"a change starts over": {
			{0, "u", []string{"a"}, false, 10 * time.Second, 0},
			{9 * time.Second, "u", []string{"a", "b"}, false, 10 * time.Second, 0},
			{18 * time.Second, "u", []string{"a", "b"}, false, time.Second, 0},
			{19 * time.Second, "u", []string{"a", "b"}, true, 0, 0},
		},
		"a part that goes starts over, too": {
			{0, "u", []string{"a", "b"}, false, 10 * time.Second, 0},
			{9 * time.Second, "u", []string{"a"}, false, 10 * time.Second, 0},
		},
		"no destructive change for a moment": {
			{0, "u", []string{"a"}, false, 10 * time.Second, 0},
			{5 * time.Second, "u", nil, false, 0, 0},
			{11 * time.Second, "u", []string{"a"}, false, 10 * time.Second, 0},
		},
		"what is left while it is carried out": {
			{0, "u", []string{"a", "b", "c"}, false, 10 * time.Second, 0},
			{10 * time.Second, "u", []string{"a", "b", "c"}, true, 0, 0},
			{11 * time.Second, "u", []string{"c"}, true, 0, 0},
			{12 * time.Second, "u", nil, false, 0, 0},
			{13 * time.Second, "u", []string{"c"}, false, 10 * time.Second, 0},
		},
		"what came back while it is carried out and goes again": {
			{0, "u", []string{"a", "b"}, false, 10 * time.Second, 0},
			{10 * time.Second, "u", []string{"a", "b"}, true, 0, 0},
			{11 * time.Second, "u", []string{"a"}, true, 0, 0},
			{99 * time.Hour, "u", []string{"a", "b"}, false, 10 * time.Second, 0},
		},
		"deletions in the namespace go on": {
			{0, "u", []string{"a"}, false, 10 * time.Second, 0},
			{9 * time.Second, "u", []string{"a"}, false, 8 * time.Second, 7 * time.Second},
			{16 * time.Second, "u", []string{"a"}, false, 9 * time.Second, 15 * time.Second},
			{25 * time.Second, "u", []string{"a"}, true, 0, 15 * time.Second},
			{26 * time.Second, "u", []string{"a"}, true, 0, 26 * time.Second},
		},
		"deletions in the namespace never end": {
			{0, "u", []string{"a"}, false, 10 * time.Second, 0},
			{299 * time.Second, "u", []string{"a"}, false, 10 * time.Second, 299 * time.Second},
			{309 * time.Second, "u", []string{"a"}, false, time.Second, 309 * time.Second},
			{310 * time.Second, "u", []string{"a"}, true, 0, 310 * time.Second},
		},
		"something new while it is carried out": {
			{0, "u", []string{"a", "b"}, false, 10 * time.Second, 0},
			{10 * time.Second, "u", []string{"a", "b"}, true, 0, 0},
			{11 * time.Second, "u", []string{"b", "d"}, false, 10 * time.Second, 0},
		},
		"another object with the same name": {
			{0, "u", []string{"a"}, false, 10 * time.Second, 0},
			{10 * time.Second, "u", []string{"a"}, true, 0, 0},
			{11 * time.Second, "v", []string{"a"}, false, 10 * time.Second, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s Settling

			for i, step := range steps {
				now := start.Add(step.at)
				s = s.settle(step.uid, step.keys, start.Add(step.deleted), now, settleTime)

				if s.settled != step.settled || s.remaining(now, settleTime) != step.left {
					t.Errorf("step %d: settled %v, %s left", i, s.settled, s.remaining(now, settleTime))
				}
			}
		})
	}
}

// TestSettleTimeForEver: who wants nothing destroyed without an approval gives a time that never ends, and no product of it may
// wrap around. A document is deleted a moment after the set was seen first, as when its own deletion made the set.
func TestSettleTimeForEver(t *testing.T) {
	start := time.Unix(1000, 0)

	for _, settleTime := range []time.Duration{85401 * time.Hour, 85402 * time.Hour, 87600 * time.Hour, math.MaxInt64} {
		s := Settling{}.settle("u", []string{"a"}, time.Time{}, start, settleTime)
		now := start.Add(24 * time.Hour)
		s = s.settle("u", []string{"a"}, start.Add(time.Millisecond), now, settleTime)

		if left := s.remaining(now, settleTime); s.settled || left < settleTime-24*time.Hour {
			t.Errorf("%s: after a day it is settled: %t, %s left", settleTime, s.settled, left)
		}
	}
}
