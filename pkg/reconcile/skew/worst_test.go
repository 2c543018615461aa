package skew

import (
	"testing"
	"time"
)

// TestWorst: which of the two servers has the wrong clock is not known, and which of several replicas answers next neither.
func TestWorst(t *testing.T) {
	type answer struct {
		hub   bool
		ahead time.Duration
		after time.Duration // the start
	}

	for name, test := range map[string]struct {
		answers []answer
		want    Difference
		large   bool
		says    string
	}{
		"no answer": {want: Difference{Server: "omni-apiserver"}, says: "the clocks of omni-apiserver and of omni-controller differ by about 0s"},
		"omni-apiserver on the same node": {
			answers: []answer{{hub: true, ahead: 10*time.Hour + 20*time.Minute + time.Second}, {}},
			want:    Difference{Server: "kube-apiserver", Ahead: 10*time.Hour + 20*time.Minute + time.Second}, large: true,
			says: "the clocks of kube-apiserver and of omni-controller differ by about 10h20m0s",
		},
		"both, and another one each": {
			answers: []answer{{hub: true, ahead: time.Minute}, {ahead: -2 * time.Minute}},
			want:    Difference{Server: "omni-apiserver", Ahead: -2 * time.Minute}, large: true,
		},
		"within what clocks differ": {answers: []answer{{hub: true, ahead: -30 * time.Second}}, want: Difference{Server: "kube-apiserver", Ahead: -30 * time.Second}},
		"one of the replicas": {
			answers: []answer{{ahead: time.Hour}, {after: 5 * time.Second}, {after: 59 * time.Second}, {after: 61 * time.Second}},
			want:    Difference{Server: "omni-apiserver", Ahead: time.Hour}, large: true,
		},
		"mended": {
			answers: []answer{{ahead: time.Hour}, {after: 61 * time.Second}, {after: 122 * time.Second}},
			want:    Difference{Server: "omni-apiserver"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &Clock{}

			for _, answer := range test.answers {
				of := &clock.omni
				if answer.hub {
					of = &clock.hub
				}

				of.note(answer.ahead, after(answer.after, 0))
			}

			got := clock.Worst()
			if got != test.want || got.TooLarge() != test.large {
				t.Errorf("%+v, too large: %t", got, got.TooLarge())
			}

			if test.says != "" && got.String() != test.says {
				t.Errorf("it says %q", got)
			}
		})
	}
}

// A status that tells a difference stays as it is while nothing changes but what whole seconds leave open.
func TestDifferenceIsToldWithoutJitter(t *testing.T) {
	for _, off := range []time.Duration{-time.Second, -500 * time.Millisecond, 0, 500 * time.Millisecond} {
		if got, want := (Difference{Ahead: time.Hour + off}).String(), (Difference{Ahead: -time.Hour}).String(); got != want {
			t.Errorf("%s: %q, want %q", off, got, want)
		}
	}
}

// after is a reading after the start of this process, of a clock that was set ahead since.
func after(start, set time.Duration) reading {
	return reading{wall: began.Round(0).Add(start + set), monotonic: start}
}

// TestOurClockIsSet: a jump of our own clock counts at once, and not only when a server has answered again.
func TestOurClockIsSet(t *testing.T) {
	for name, test := range map[string]struct {
		ahead time.Duration // at the last answer
		set   time.Duration // since
		want  time.Duration
	}{
		"not set":               {ahead: time.Second, want: time.Second},
		"corrected a little":    {ahead: time.Second, set: -2 * time.Second, want: time.Second},
		"set back":              {set: -25 * time.Hour, want: 25 * time.Hour},
		"set ahead":             {set: 25 * time.Hour, want: -25 * time.Hour},
		"mended":                {ahead: 25 * time.Hour, set: 25 * time.Hour},
		"mended, and too far":   {ahead: time.Hour, set: 2 * time.Hour, want: -time.Hour},
		"set, no answer so far": {ahead: -1, set: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			r := &record{}
			if test.ahead >= 0 {
				r.note(test.ahead, after(time.Minute, 0))
			}

			if got := r.latest(after(2*time.Minute, test.set)); got != test.want {
				t.Errorf("ahead by %s, want %s", got, test.want)
			}

			if got := r.worst(after(2*time.Minute, test.set)); got.Abs() < test.want.Abs() {
				t.Errorf("at worst ahead by %s, want %s at least", got, test.want)
			}
		})
	}
}
