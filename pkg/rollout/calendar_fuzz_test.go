package rollout_test

import (
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// FuzzCalendar compares At with a slow implementation of the rules: minute by minute, by the local time that clocks
// show.
func FuzzCalendar(f *testing.F) {
	names := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia"}

	f.Add(uint8(1), uint8(0b1000001), uint16(150), uint16(60), int64(1774745100)) // the clocks go forward
	f.Add(uint8(1), uint8(0b0000001), uint16(150), uint16(60), int64(1792890000)) // and back
	f.Add(uint8(3), uint8(0b1111111), uint16(135), uint16(1440), int64(1790960400))
	f.Add(uint8(7), uint8(0b0100000), uint16(120), uint16(15), int64(1325149200)) // a day is left out

	f.Fuzz(func(t *testing.T, which, days uint8, start, minutes uint16, seconds int64) {
		const first, last = 700_000_000, 2_100_000_000 // 1992 to 2036: whole minutes from UTC everywhere

		weekly := rollout.Weekly{
			Hour: int(start) % 1440 / 60, Minute: int(start) % 60, Duration: (15*time.Minute + time.Duration(minutes)*time.Minute) % (24 * time.Hour),
			Zone: zone(t, names[int(which)%len(names)]),
		}
		weekly.Duration = max(weekly.Duration, 15*time.Minute)

		for day := range 7 {
			if days&(1<<day) != 0 {
				weekly.Days = append(weekly.Days, time.Weekday(day))
			}
		}

		now := time.Unix(first+(seconds%(last-first)+last-first)%(last-first), 0).Truncate(time.Minute)
		calendar := rollout.Calendar{Windows: []rollout.Weekly{weekly}}

		got := calendar.At(now)
		if want := openByTheClock(weekly, now); got.Open != want {
			t.Fatalf("at %s (%s) open is %t, want %t: %+v", now, now.In(weekly.Zone), got.Open, want, weekly)
		}

		switch {
		case got.Next.IsZero():
			if len(weekly.Days) > 0 {
				t.Fatalf("nothing comes after %s: %+v", now, weekly)
			}
		case !got.Next.After(now):
			t.Fatalf("what comes next at %s was at %s", now, got.Next)
		case got.Open != calendar.At(got.Next.Add(-time.Second)).Open:
			t.Fatalf("it is another one before %s", got.Next)
		case !got.Open && !calendar.At(got.Opens).Open:
			t.Fatalf("it does not open at %s", got.Opens)
		}
	})
}

// openByTheClock implements the rules literally: it goes back minute by minute through the longest time a window can
// be open, and checks whether the window opened at one of those minutes.
func openByTheClock(w rollout.Weekly, now time.Time) bool {
	for at := now; at.After(now.Add(-w.Duration)); at = at.Add(-time.Minute) {
		if opensAt(w, at) {
			return true
		}
	}

	return false
}

// opensAt reports whether an instant is the first at which clocks show the opening's time of day, or a later one on
// that day if they have skipped it.
func opensAt(w rollout.Weekly, at time.Time) bool {
	shown, before := wall(at.In(w.Zone)), wall(at.Add(-time.Minute).In(w.Zone))

	for _, day := range w.Days {
		// The dates that clocks show now, or that they skipped when they were put forward.
		for date := before.Truncate(24 * time.Hour); !date.After(shown); date = date.AddDate(0, 0, 1) {
			opening := date.Add(time.Duration(w.Hour)*time.Hour + time.Duration(w.Minute)*time.Minute)
			if date.Weekday() == day && before.Before(opening) && !shown.Before(opening) && !shownBefore(w, at, opening) {
				return true
			}
		}
	}

	return false
}

// shownBefore reports whether clocks have shown a local time already within the last day.
func shownBefore(w rollout.Weekly, at, opening time.Time) bool {
	for earlier := at.Add(-time.Minute); earlier.After(at.Add(-24 * time.Hour)); earlier = earlier.Add(-time.Minute) {
		if wall(earlier.In(w.Zone)).Equal(opening) {
			return true
		}
	}

	return false
}

// wall returns the local time that clocks show at an instant, as if it were UTC.
func wall(t time.Time) time.Time {
	year, month, day := t.Date()

	return time.Date(year, month, day, t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}
