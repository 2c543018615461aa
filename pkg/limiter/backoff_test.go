package limiter_test

import (
	"math"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
)

func TestAfter(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		-1: 15 * time.Second, 0: 15 * time.Second, 1: 15 * time.Second, 2: 30 * time.Second, 3: time.Minute, 5: 4 * time.Minute,
		6: 5 * time.Minute, 7: 5 * time.Minute, math.MaxInt: 5 * time.Minute,
	} {
		if got := limiter.BackoffAfter(failures, 15*time.Second, 5*time.Minute); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
}

func TestNext(t *testing.T) {
	b := limiter.NewBackoff(time.Second, 5*time.Second)

	for _, most := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
		if longest := b.Longest(); longest != most {
			t.Errorf("the next pause is %s at most, want %s", longest, most)
		}

		if got := b.Next(); got < most/2 || got > most {
			t.Errorf("a pause of %s, want %s to %s", got, most/2, most)
		}
	}

	if got := limiter.NewBackoff(time.Minute, time.Second).Next(); got > time.Second {
		t.Errorf("the first pause is %s, longer than the longest", got)
	}
}

func TestJitter(t *testing.T) {
	seen := map[time.Duration]bool{}

	for range 100 {
		got := limiter.Jitter(time.Hour)
		if got < 30*time.Minute || got > time.Hour {
			t.Fatal(got)
		}

		seen[got] = true
	}

	if len(seen) < 2 {
		t.Error("always the same")
	}

	if got := limiter.Jitter(0); got != 0 {
		t.Error(got)
	}
}
