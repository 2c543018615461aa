package rollout

import (
	"slices"
	"time"
)

// Freeze is a period in which nothing begins.
type Freeze struct {
	// Name is what people call it.
	Name string
	// From is the freeze's first instant, Until the first instant after it.
	From, Until time.Time
}

func (f Freeze) contains(t time.Time) bool { return span{f.From, f.Until}.contains(t) }

// Calendar says when changes may begin. The zero value is always open.
type Calendar struct {
	// Windows are the times at which the calendar is open; overlapping ones are joined. Without any it is always
	// open.
	Windows []Weekly
	// Freezes close the calendar whatever the windows say.
	Freezes []Freeze
}

// CalendarState is the state of a Calendar at an instant.
type CalendarState struct {
	// Open says whether changes may begin.
	Open bool
	// Freeze is the name of the freeze that closes the calendar; empty if none does.
	Freeze string
	// Next is the next instant at which Open may change; zero if it never does. It is always later than the instant
	// of the state. For a calendar that stays open, Next is nine or ten days ahead.
	Next time.Time
	// Opens is the next instant at which changes may begin; zero if they may now, or never.
	Opens time.Time
}

// mostSteps bounds the search for the next opening. Each step skips a freeze, or goes to the next window.
const mostSteps = 1000

// At returns the state of the calendar at an instant.
func (c Calendar) At(now time.Time) CalendarState {
	if c.open(now) {
		return CalendarState{Open: true, Next: c.closes(now)}
	}

	state := CalendarState{Opens: c.opens(now)}
	if i := slices.IndexFunc(c.Freezes, func(f Freeze) bool { return f.contains(now) }); i >= 0 {
		state.Freeze = c.Freezes[i].Name
	}

	state.Next = state.Opens

	return state
}

// open reports whether the calendar is open at an instant.
func (c Calendar) open(t time.Time) bool {
	if slices.ContainsFunc(c.Freezes, func(f Freeze) bool { return f.contains(t) }) {
		return false
	}

	return len(c.Windows) == 0 || slices.ContainsFunc(c.spans(t), func(s span) bool { return s.contains(t) })
}

// closes returns when the calendar closes that is open at an instant.
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

// opens returns when the calendar opens that is closed at an instant; zero if it never does.
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

// spans lists the joined times around an instant at which the windows are open, in order.
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
