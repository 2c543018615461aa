package rollout_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// FuzzRollout runs a small fleet through a script with an event every six hours, and checks every evaluation against
// the rules. At the end, everything that can be repaired is, and every cluster must get what it asks for.
func FuzzRollout(f *testing.F) {
	foreigntest.Sequential(f)

	f.Add(uint64(1), []byte{0, 0, 0, 0})
	f.Add(uint64(2), []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add(uint64(3), []byte{0, 9, 0, 8, 0, 7, 0, 6, 0, 5, 0, 4, 0, 3, 0, 2, 0, 1})
	f.Add(uint64(4), []byte{0, 4, 4, 4, 0, 7, 7, 1, 1, 0, 9, 9, 0})
	f.Add(uint64(5), []byte{0, 6, 6, 0, 6, 7, 0, 0, 6})
	f.Add(uint64(6), []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})

	f.Fuzz(func(t *testing.T, seed uint64, script []byte) {
		const most = 60
		live(t, seed, script[:min(len(script), most)])
	})
}

// live runs a script.
func live(t *testing.T, seed uint64, script []byte) {
	random := rand.New(rand.NewPCG(seed, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	stages := []rules{
		{name: "canary", most: pick("1", "2"), needed: pick("1", "2"), soak: time.Duration(random.IntN(30)) * time.Hour},
		{name: "stage", most: pick("1", "50%", "100%"), needed: pick("1", "50%", "100%"), soak: time.Duration(random.IntN(30)) * time.Hour},
		{name: "prod", most: pick("1", "2", "30%"), needed: "1", zone: pick("Europe/Berlin", "America/New_York", "UTC")},
	}

	switch random.IntN(3) {
	case 0:
		stages[2].days = []time.Weekday{time.Saturday, time.Sunday}
	case 1:
		stages[2].days = []time.Weekday{time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday, time.Saturday, time.Sunday}
	}

	w := newWorld(t, seed, []int{2 + random.IntN(2), 2 + random.IntN(3), 2 + random.IntN(6)}, stages, random.IntN(3))
	w.step, w.fails = time.Second, random.IntN(25)
	w.now = w.now.Add(time.Duration(random.IntN(365*24)) * time.Hour)

	if random.IntN(2) == 0 { // numbers alone: who is seen late changes what a percentage is of
		w.stale, w.checker.lag = 20, time.Minute
		w.checker.stages[1].most, w.checker.stages[1].needed = "1", "2"
		w.policy.Spec.Stages[1].MaxConcurrent, w.policy.Spec.Stages[1].MinQualified = share("1"), share("2")
		w.checker.stages[2].most, w.policy.Spec.Stages[2].MaxConcurrent = "2", share("2")
	}

	for i, action := range script {
		w.at(w.now.Add(time.Duration(6*(i+1))*time.Hour), func() { w.play(i, action) })
	}

	w.run(w.now.Add(time.Duration(6*len(script)+7) * time.Hour))

	// Let every cluster become healthy, and let all ask for the same content.
	w.run(w.now.Add(8 * 24 * time.Hour))
	w.hold(false)
	w.fails = 0

	for _, c := range w.clusters {
		w.relabel(c, map[byte]int{'c': 0, 's': 1, 'p': 2}[c.name[0]])
	}

	w.run(w.now.Add(7 * 24 * time.Hour))

	for _, c := range w.clusters {
		c.asks, c.askedAt = content{"v1.99.0", "v1.99.0", 1_000_000}, w.now
	}

	w.run(w.now.Add(10 * 7 * 24 * time.Hour))

	if !t.Failed() {
		w.reached()
	}
}

// play is one event of a script.
func (w *world) play(number int, action byte) {
	if len(w.clusters) == 0 {
		return
	}

	const day = 24 * time.Hour

	switch one := w.any(); action % 10 {
	case 0, 1:
		w.commit(number)
	case 2:
		w.kill(one, time.Minute, day)
	case 3:
		w.pause(one, time.Minute, day)
	case 4:
		w.again(one)
	case 5:
		w.relabel(one, w.random.IntN(3))
	case 6:
		w.hold(!w.checker.held)
	case 7:
		w.promote(w.random.IntN(3), w.now.Add(w.between(time.Hour, 9*day)).Truncate(time.Second))
	case 8:
		w.lose()
	case 9:
		w.freeze(w.now.Add(w.between(0, day)).Truncate(time.Second), w.between(time.Hour, 2*day).Truncate(time.Second))
		w.policy.Generation++
	}
}
