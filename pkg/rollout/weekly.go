package rollout

import (
	"slices"
	"time"
)

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
