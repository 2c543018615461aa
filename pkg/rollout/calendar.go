package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" //the image has no zones of its own
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

// Weekly is a window that opens on some days of every week.
type Weekly struct {
	// Days are those on which it opens.
	Days []time.Weekday
	// Hour and Minute are the time of day at which it opens, in Zone.
	Hour, Minute int
	// Duration is how long the window is open, as elapsed time, even if clocks change meanwhile. At most 24 hours.
	Duration time.Duration
	// Zone is the time zone of Days, Hour and Minute.
	Zone *time.Location
}

// span is a period that includes its first instant and not its last.
type span struct{ from, until time.Time }

func (s span) contains(t time.Time) bool { return !t.Before(s.from) && t.Before(s.until) }

// around is how many days before and after an instant are searched. A window lasts a day at most, and may open a day
// late if the time zone has skipped a day; the next window is at most a week away.
const (
	daysBefore = 3
	daysAfter  = 9
)

// around lists the times around an instant at which the window is open, in order.
func (w Weekly) around(t time.Time) []span {
	var spans []span

	year, month, day := t.In(w.Zone).Date()

	for offset := -daysBefore; offset <= daysAfter; offset++ {
		// Noon UTC stands for the date, without a zone: only the date is used.
		date := time.Date(year, month, day+offset, 12, 0, 0, 0, time.UTC)
		if !slices.Contains(w.Days, date.Weekday()) {
			continue
		}

		from := w.opening(date)
		spans = append(spans, span{from, from.Add(w.Duration)})
	}

	return spans
}

// opening returns the instant at which the window opens on a date: the first at which clocks show its time of day. If
// clocks are put forward past that time, the window opens when they are put forward. If they are put back and show
// the time twice, it opens the first time.
func (w Weekly) opening(date time.Time) time.Time {
	year, month, day := date.Date()
	shown := time.Date(year, month, day, w.Hour, w.Minute, 0, 0, time.UTC)

	// The UTC offset at the opening is either the one more than a day before or the one more than a day after.
	before, after := w.offset(shown.Add(-28*time.Hour)), w.offset(shown.Add(28*time.Hour))
	candidates := []time.Time{shown.Add(-max(before, after)), shown.Add(-min(before, after))}

	for _, candidate := range candidates {
		if w.offset(candidate) == shown.Sub(candidate) {
			return candidate.In(w.Zone)
		}
	}

	// No instant has this local time: clocks were put forward past it. The first candidate is before that.
	_, forward := candidates[0].In(w.Zone).ZoneBounds()

	return forward
}

// offset returns the zone's UTC offset at an instant.
func (w Weekly) offset(t time.Time) time.Duration {
	_, seconds := t.In(w.Zone).Zone()

	return time.Duration(seconds) * time.Second
}

// errZone is the remedy in the error for an invalid zone name.
var errZone = errors.New(`use "UTC", or a name of the IANA database with a slash, such as "Europe/Berlin"`)

// Zone returns the time zone with a name: UTC, or a name with a slash from the IANA database. Names without a slash,
// such as CET, are refused: they exist for old programs, and some of them have no summer time where people expect it.
// The error says what to use instead.
func Zone(name string) (*time.Location, error) {
	if name == "UTC" {
		return time.UTC, nil
	}

	// Etc/GMT+1 is one hour west of Greenwich, which nobody expects.
	if !strings.Contains(name, "/") || strings.HasPrefix(name, "Etc/") {
		return nil, fmt.Errorf("%q is not a time zone that says which rules it follows: %w", name, errZone)
	}

	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("there is no time zone %q: %w", name, errZone)
	}

	return zone, nil
}
