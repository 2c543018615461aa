package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// newWorld makes a fleet of the given number of clusters that all run the same content, and a checker with the
// policy's rules.
func newWorld(t testing.TB, seed uint64, sizes []int, stages []rules, most int) *world {
	object := policyOf(func(p *v1alpha1.OmniRolloutPolicy) {
		p.Generation, p.Status, p.Spec.MaxFailed, p.Spec.Stages = 1, v1alpha1.OmniRolloutPolicyStatus{}, int32(most), nil
	})
	start := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC) // a Monday

	w := &world{
		t: t, now: start, policy: object, random: rand.New(rand.NewPCG(seed, 1)), deadline: 2 * time.Hour, step: 10 * time.Minute, fails: 2, every: 1,
		checker: &checker{
			t: t, stages: stages, most: most, arrival: 15 * time.Minute, books: map[string]*book{}, proofs: map[string]bool{},
			quiet: make([]time.Time, len(stages)), promoted: map[int]time.Time{},
		},
	}

	for number, rules := range stages {
		stage := v1alpha1.RolloutStage{
			Name: rules.name, MaxConcurrent: share(rules.most), MinQualified: share(rules.needed), SoakTime: v1alpha1.Duration(rules.soak.String()),
		}
		if number < len(stages)-1 {
			stage.ClusterSelector = &v1alpha1.ClusterSelector{MatchLabels: map[string]string{"tier": rules.name}}
		}

		if len(rules.days) > 0 {
			one := v1alpha1.MaintenanceWindow{Start: "02:00", Duration: "4h", TimeZone: rules.zone}
			for _, day := range rules.days {
				one.Days = append(one.Days, v1alpha1.Weekday(day.String()[:3]))
			}

			stage.Windows = []v1alpha1.MaintenanceWindow{one}
		}

		object.Spec.Stages = append(object.Spec.Stages, stage)

		for i := range sizes[number] {
			w.add(fmt.Sprintf("%s-%03d", rules.name, i), number, content{"v1.35.0", "v1.13.0", 0})
		}
	}

	return w
}

// freeze lets nothing begin for some time.
func (w *world) freeze(from time.Time, lasts time.Duration) {
	w.policy = w.policy.DeepCopy()
	w.policy.Spec.Freezes = append(w.policy.Spec.Freezes, v1alpha1.RolloutFreeze{
		Name: fmt.Sprint("f", len(w.policy.Spec.Freezes)), From: *seconds(from), Until: *seconds(from.Add(lasts)),
	})
	w.checker.freezes = append(w.checker.freezes, [2]time.Time{from, from.Add(lasts)})
}

// reached checks that every cluster runs what its objects ask for.
func (w *world) reached() {
	for _, c := range w.clusters {
		if c.asks != c.has || !c.healthy() || c.status.State != "" {
			verdict := w.read().Judge(c.member(), w.now)
			w.t.Errorf("%s: %s has %v and not %v, well: %t, %s: %s %s", w.now, c.name, c.has, c.asks, c.healthy(), c.status.State, verdict.Reason, verdict.Message)
		}
	}
}

// TestYear is a year of a fleet: commits each week, failures, and everything that goes wrong beside them.
func TestYear(t *testing.T) {
	foreigntest.Sequential(t)

	t.Run("seen as it is", func(t *testing.T) { year(t, 52, 0) })
	t.Run("seen late", func(t *testing.T) { year(t, 22, 3) })
}

// year runs the given number of weeks. The policy sees the given percentage of clusters as they were some time ago.
func year(t *testing.T, weeks, stale int) {
	t.Parallel()

	const day = 24 * time.Hour

	w := newWorld(t, 7, []int{10, 80, 210}, []rules{
		{name: "canary", most: "2", needed: "2", soak: 24 * time.Hour},
		{name: "stage", most: "10%", needed: "50%", soak: 36 * time.Hour},
		{name: "prod", most: "20%", needed: "1", soak: time.Hour, zone: "Europe/Berlin", days: []time.Weekday{time.Saturday, time.Sunday}},
	}, 3)
	w.every, w.stale, w.step = 200, stale, 20*time.Minute

	if stale > 0 {
		w.checker.lag, w.checker.slack = time.Hour, 3
	}

	start := w.now
	in := func(days, hours int) time.Time {
		return start.Add(time.Duration(days)*day + time.Duration(hours)*time.Hour)
	}

	w.freeze(in(352-7, 0), 10*day) // the end of the year
	w.freeze(in(100, 0), 3*day)

	for i, c := range w.clusters {
		if c.stage == 2 && i%7 == 0 {
			c.zone = "America/New_York"
		}
	}

	const quietWeeks = 8
	for week := 1; week < weeks-quietWeeks; week++ {
		w.at(in(7*week, 1), func() { w.commit(week) })

		for range 3 {
			w.at(in(7*week, 0).Add(w.between(0, 7*day)), func() { w.kill(w.any(), time.Hour, 3*day) })
		}

		for range 2 {
			w.at(in(7*week, 0).Add(w.between(0, 7*day)), func() { w.pause(w.any(), time.Hour, 7*day) })
		}

		w.at(in(7*week, 0).Add(w.between(0, 7*day)), func() { w.again(w.any()) })
		w.at(in(7*week, 0).Add(w.between(0, 7*day)), func() { w.relabel(w.any(), w.random.IntN(3)) })
	}

	for _, when := range []int{60, 150, 250} {
		w.at(in(when, 3), func() { w.hold(true) })
		w.at(in(when+1, 0), func() { w.hold(false) })
		w.at(in(when+22, 0), func() { w.promote(2, w.now.Add(5*day)) })
	}

	for _, when := range []int{39, 74, 95} {
		w.at(in(when, 19), w.lose) // on a Saturday at four in Berlin, where many are at work
	}

	w.run(in(7*weeks, 0))
	w.reached()

	c := w.checker
	if c.begins < 100*weeks || c.failures < 2*weeks || c.overrides > c.begins/100 {
		t.Errorf("this was no year: %d began, %d failed, %d by override", c.begins, c.failures, c.overrides)
	}

	t.Logf("%d clusters, %d commits, %d views: %d begun (%d by override), %d done, %d failed, %d fixed, %d handed back; held for %s on average",
		len(w.clusters), c.commits, w.views, c.begins, c.overrides, c.dones, c.failures, c.fixes, w.returned, (c.heldFor / time.Duration(c.begins)).Round(time.Minute))
}
