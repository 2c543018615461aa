package rollout_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// checker compares what happens with the documented contract of rollouts. It does not use the policy's code: it keeps
// its own record of which cluster runs what, and since when.
type checker struct {
	t        testing.TB
	stages   []rules
	freezes  [][2]time.Time
	most     int // failed clusters
	arrival  time.Duration
	lag      time.Duration // what the policy sees may be as old as this
	slack    int           // and so as many clusters may be others
	books    map[string]*book
	proofs   map[string]bool
	quiet    []time.Time // when a patch of each stage was done last
	promoted map[int]time.Time
	looked   time.Time
	held     bool

	commits, begins, dones, failures, fixes, overrides int
	heldFor                                            time.Duration // all waiting together
}

// rules are the rules of a stage.
type rules struct {
	name, most, needed string
	soak               time.Duration
	zone               string
	days               []time.Weekday // on which it is open from 02:00 for four hours; none: always
}

// book is the checker's record of a cluster.
type book struct {
	stage                      int
	has                        content
	wellSince                  time.Time // zero: it is not well
	working, failed, paused    bool
	failedAt                   time.Time
	wasWorking, wasHere, could bool // at the last look: it was at work, in this stage, not paused
	wasFailed                  bool
	patching                   bool
	cluster                    *cluster
}

// part is a share of clusters.
func part(share string, clusters int, up bool) int {
	text, percent := strings.CutSuffix(share, "%")

	number, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}

	switch {
	case !percent:
		return number
	case up:
		return max(1, (number*clusters+99)/100)
	default:
		return min(100, max(1, number*clusters/100))
	}
}

// counts reports whether a cluster counts for its stage.
func (b *book) counts() bool { return !b.paused && (!b.wellSince.IsZero() || b.working || b.failed) }

func (c *checker) countable(stage int) int {
	found := 0

	for _, b := range c.books {
		if b.stage == stage && b.counts() {
			found++
		}
	}

	return found
}

// recordProved records what each stage has proved by now: what enough of its clusters have each run well for the soak time.
func (c *checker) recordProved(now time.Time) {
	for stage, rules := range c.stages[:len(c.stages)-1] {
		needed, runs := part(rules.needed, c.countable(stage), true), map[string]int{}

		for _, b := range c.books {
			if b.stage == stage && !b.paused && !b.wellSince.IsZero() && now.Sub(b.wellSince) >= rules.soak-c.lag {
				runs[b.has.kubernetes]++
				runs["talos "+b.has.talos]++
			}
		}

		for version, clusters := range runs {
			if clusters >= needed-c.slack {
				c.proofs[fmt.Sprint(stage, " ", version)] = true
			}
		}
	}
}

// proved checks, if the policy sees everything as it is, that the stages prove no later than they may: when enough
// clusters have each run a version for the soak time, and no other still has to get it. One that stops running well now
// and then must not delay that.
func (c *checker) proved(status v1alpha1.OmniRolloutPolicyStatus, now time.Time) {
	if c.lag > 0 || c.slack > 0 {
		return
	}

	for stage, rules := range c.stages[:len(c.stages)-1] {
		needed, runs, pending := part(rules.needed, c.countable(stage), true), map[string]int{}, map[string]bool{}

		for _, b := range c.books {
			switch asks := b.cluster.asks.kubernetes; {
			case b.stage != stage || !b.counts() || b.failed && !b.working:
			case b.working || asks != b.has.kubernetes:
				pending[asks] = true
			case now.Sub(b.wellSince) >= rules.soak:
				runs[b.has.kubernetes]++
			}
		}

		// The policy remembers ten versions, and may have forgotten this one.
		remembered := kubernetes(status.Stages[stage])

		for version, clusters := range runs {
			if clusters >= needed && !pending[version] && len(remembered) < 10 && !slices.Contains(remembered, version) {
				c.t.Errorf("%s: %d clusters of stage %q have run %s for %s, and it is not proved", now, clusters, rules.name, version, rules.soak)
			}
		}
	}
}

// began checks that a change that has begun was allowed to begin. This is the main check.
func (c *checker) began(one *cluster, now time.Time) {
	c.recordProved(now)

	b := c.books[one.name]
	isFix := b.failed
	until := c.promoted[b.stage]
	promoted := now.Before(until) && until.Sub(now) <= 7*24*time.Hour
	c.begins++
	c.heldFor += now.Sub(one.status.HeldSince.Time)

	if one.overridden {
		c.overrides++
		c.starts(one, b)

		return
	}

	complain := func(format string, args ...any) {
		c.t.Helper()
		c.t.Errorf("%s: %s in stage %q: %s", now, one.name, c.stages[b.stage].name, fmt.Sprintf(format, args...))
	}

	if b.paused || b.working || b.wellSince.IsZero() && !isFix {
		complain("begins while paused (%t), at work (%t), or not well (since %s)", b.paused, b.working, b.wellSince)
	}

	if working, most := c.working(b.stage), part(c.stages[b.stage].most, c.countable(b.stage)+c.slack, false); working >= most {
		complain("begins beside %d, %d may be at work", working, most)
	}

	if c.held {
		complain("begins while held")
	}

	for _, freeze := range c.freezes {
		if !now.Before(freeze[0]) && now.Before(freeze[1]) {
			complain("begins in a freeze")
		}
	}

	if zone := one.zone; !c.open(b.stage, zone, now) {
		complain("begins outside the windows")
	}

	if stopped := c.stopped(now); stopped > c.most && !isFix {
		complain("begins while %d failed", stopped)
	}

	for earlier := range b.stage {
		if promoted || isFix {
			break
		}

		for _, kind := range one.kinds() {
			switch kind {
			case v1alpha1.ChangeKubernetesVersion:
				if !c.proofs[fmt.Sprint(earlier, " ", one.asks.kubernetes)] {
					complain("stage %d has not proved %s", earlier, one.asks.kubernetes)
				}
			case v1alpha1.ChangeTalosVersion:
				if !c.proofs[fmt.Sprint(earlier, " talos ", one.asks.talos)] {
					complain("stage %d has not proved Talos %s", earlier, one.asks.talos)
				}
			default:
				if text := c.loud(earlier, now); text != "" {
					complain("stage %d is not quiet: %s", earlier, text)
				}

				if seen := now.Sub(one.askedAt); seen < c.arrival {
					complain("a patch is seen for %s only", seen)
				}
			}
		}
	}

	c.starts(one, b)
}

func (c *checker) starts(one *cluster, b *book) {
	b.working, b.wellSince, b.has, b.patching = true, time.Time{}, one.asks, one.asks.patch != one.has.patch
}

// working counts the clusters of a stage whose changes are in progress, and were at the policy's last evaluation.
func (c *checker) working(stage int) int {
	found := 0

	for _, b := range c.books {
		if b.stage == stage && b.working && !b.paused && (!b.wasWorking || b.wasHere && b.could) {
			found++
		}
	}

	return found
}

// stopped counts the failed clusters whose failure the policy could know.
func (c *checker) stopped(now time.Time) int {
	found := 0

	for _, b := range c.books {
		if b.failed && b.wasFailed && now.Sub(b.failedAt) >= c.lag {
			found++
		}
	}

	return found
}

// loud says why a stage is not quiet.
func (c *checker) loud(stage int, now time.Time) string {
	if ago := now.Sub(c.quiet[stage]); ago < c.stages[stage].soak-c.lag {
		return fmt.Sprintf("the last patch ended %s ago", ago)
	}

	for name, b := range c.books {
		asked := b.cluster.asks.patch != b.cluster.has.patch && b.cluster.askedAt.Add(c.lag).Before(c.looked)
		if b.stage == stage && b.wasHere && !b.paused && !b.failed && (b.working && b.wasWorking && b.patching || asked && b.could && !b.wellSince.IsZero() && b.wellSince.Before(c.looked)) {
			return "a patch of " + name
		}
	}

	return ""
}

// open reports whether the windows of a stage are open: from 02:00 on some days, for four hours.
func (c *checker) open(stage int, zone string, now time.Time) bool {
	rules := c.stages[stage]
	if len(rules.days) == 0 {
		return true
	}

	if zone == "" {
		zone = rules.zone
	}

	location, err := time.LoadLocation(zone)
	if err != nil {
		c.t.Fatal(err)
	}

	local := now.In(location)
	for at := local.Add(-4*time.Hour + time.Minute).Truncate(time.Minute); !at.After(local); at = at.Add(time.Minute) {
		before := at.Add(-time.Minute)
		opens := at.Hour() >= 2 && before.Hour() < 2 || at.Hour() == 2 && at.Minute() == 0

		for _, day := range rules.days {
			if opens && at.Weekday() == day && !(at.Hour() == 2 && before.Hour() == 2) {
				return true
			}
		}
	}

	return false
}
