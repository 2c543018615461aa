package window

import (
	"slices"
	"time"
)

// Freeze is a time in which nothing begins.
type Freeze struct {
	// Name is what people call it.
	Name string
	// From is its first instant, Until the first after it.
	From, Until time.Time
}

func (f Freeze) contains(t time.Time) bool { return span{f.From, f.Until}.contains(t) }

// Calendar is when something may begin. The zero value is always open.
type Calendar struct {
	// Windows are joined. Without any it is open at all times.
	Windows []Weekly
	// Freezes close it whatever the windows say.
	Freezes []Freeze
}

// State is what a Calendar says of an instant.
type State struct {
	// Open reports whether something may begin.
	Open bool
	// Freeze is the name of the freeze that closes it; empty if none does.
	Freeze string
	// Next is the next instant at which Open may be another one. It is zero if that never happens; otherwise it is later
	// than the instant that was asked about. A calendar that is open for more than a week says so a week ahead.
	Next time.Time
	// Opens is the next instant at which something may begin; zero while it may, and if there is none.
	Opens time.Time
}

// mostSteps bounds the search for the next opening. Each step leaves a freeze or a day behind.
const mostSteps = 1000

// At says what the calendar says of an instant.
func (c Calendar) At(now time.Time) State {
	if c.open(now) {
		return State{Open: true, Next: c.closes(now)}
	}

	state := State{Opens: c.opens(now)}
	if i := slices.IndexFunc(c.Freezes, func(f Freeze) bool { return f.contains(now) }); i >= 0 {
		state.Freeze = c.Freezes[i].Name
	}

	state.Next = state.Opens

	return state
}

// open reports whether something may begin at an instant.
func (c Calendar) open(t time.Time) bool {
	if slices.ContainsFunc(c.Freezes, func(f Freeze) bool { return f.contains(t) }) {
		return false
	}

	return len(c.Windows) == 0 || slices.ContainsFunc(c.spans(t), func(s span) bool { return s.contains(t) })
}

// closes is the end of the time that is open at an instant.
func (c Calendar) closes(t time.Time) time.Time {
	var end time.Time

	for _, s := range c.spans(t) {
		if s.contains(t) {
			end = s.until
		}
	}

	for _, freeze := range c.Freezes {
		if freeze.From.After(t) && (end.IsZero() || freeze.From.Before(end)) {
			end = freeze.From
		}
	}

	return end
}

// opens is the first instant at which something may begin, for one at which nothing may; zero if there is none.
func (c Calendar) opens(t time.Time) time.Time {
	for range mostSteps {
		if c.open(t) {
			return t
		}

		if i := slices.IndexFunc(c.Freezes, func(f Freeze) bool { return f.contains(t) }); i >= 0 {
			t = c.Freezes[i].Until

			continue
		}

		later := slices.IndexFunc(c.spans(t), func(s span) bool { return s.from.After(t) })
		if later < 0 {
			return time.Time{}
		}

		t = c.spans(t)[later].from
	}

	return time.Time{}
}

// spans lists when the windows are open around an instant, joined and in order.
func (c Calendar) spans(t time.Time) []span {
	var all []span
	for _, one := range c.Windows {
		all = append(all, one.around(t)...)
	}

	slices.SortFunc(all, func(a, b span) int { return a.from.Compare(b.from) })

	var joined []span

	for _, next := range all {
		if last := len(joined) - 1; last >= 0 && !next.from.After(joined[last].until) {
			if next.until.After(joined[last].until) {
				joined[last].until = next.until
			}

			continue
		}

		joined = append(joined, next)
	}

	return joined
}
