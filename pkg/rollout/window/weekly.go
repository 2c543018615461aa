package window

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
	// Duration is how long it is open, in elapsed time: the clocks may change meanwhile. At most 24 hours.
	Duration time.Duration
	// Zone is the time zone of Days, Hour and Minute.
	Zone *time.Location
}

// span is from an instant to another, which does not belong to it.
type span struct{ from, until time.Time }

func (s span) contains(t time.Time) bool { return !t.Before(s.from) && t.Before(s.until) }

// around is how many days before and after an instant are looked at. A window lasts a day at most, and may be a day late
// where the calendar has a gap; the next one is a week away at most.
const (
	daysBefore = 3
	daysAfter  = 9
)

// around lists when the window is open around an instant, in order.
func (w Weekly) around(t time.Time) []span {
	var spans []span

	year, month, day := t.In(w.Zone).Date()

	for offset := -daysBefore; offset <= daysAfter; offset++ {
		// A date of the calendar, which knows no zone: noon is on it everywhere.
		date := time.Date(year, month, day+offset, 12, 0, 0, 0, time.UTC)
		if !slices.Contains(w.Days, date.Weekday()) {
			continue
		}

		from := w.opening(date)
		spans = append(spans, span{from, from.Add(w.Duration)})
	}

	return spans
}

// opening is the instant at which the window opens on a date: the first at which the clocks show its time of day. Where
// they are put forward past it, that is the instant at which they are; where they are put back over it, the first of the
// two.
func (w Weekly) opening(date time.Time) time.Time {
	year, month, day := date.Date()
	shown := time.Date(year, month, day, w.Hour, w.Minute, 0, 0, time.UTC)

	// The offset from UTC that holds at the opening is one of those that hold more than a day before and after.
	before, after := w.offset(shown.Add(-28*time.Hour)), w.offset(shown.Add(28*time.Hour))
	candidates := []time.Time{shown.Add(-max(before, after)), shown.Add(-min(before, after))}

	for _, candidate := range candidates {
		if w.offset(candidate) == shown.Sub(candidate) {
			return candidate.In(w.Zone)
		}
	}

	// No instant shows this time. The first candidate is before the clocks are put forward.
	_, forward := candidates[0].In(w.Zone).ZoneBounds()

	return forward
}

// offset is how far the clocks of the zone are ahead of UTC at an instant.
func (w Weekly) offset(t time.Time) time.Duration {
	_, seconds := t.In(w.Zone).Zone()

	return time.Duration(seconds) * time.Second
}
