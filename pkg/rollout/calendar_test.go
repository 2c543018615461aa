package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()

	found, err := rollout.Zone(name)
	if err != nil {
		t.Fatal(err)
	}

	return found
}

func timeAt(t *testing.T, text string) time.Time {
	t.Helper()

	if text == "" {
		return time.Time{}
	}

	read, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}

	return read
}

var everyDay = []time.Weekday{time.Sunday, time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday, time.Saturday}

// Times are in RFC 3339, so that each row shows the UTC offset. Clocks change on 2026-03-29 and 2026-10-25 in Europe,
// on 2026-03-08 and 2026-11-01 in New York, and on 2026-04-05 and 2026-10-04 on Lord Howe Island, there by half an
// hour.
func TestCalendar(t *testing.T) {
	weekend := []time.Weekday{time.Saturday, time.Sunday}
	berlin, newYork, lordHowe, apia := "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"

	weekly := func(days []time.Weekday, hour, minute int, duration time.Duration, name string) rollout.Weekly {
		return rollout.Weekly{Days: days, Hour: hour, Minute: minute, Duration: duration, Zone: zone(t, name)}
	}

	for name, test := range map[string]struct {
		calendar rollout.Calendar
		now      string
		open     bool
		freeze   string
		next     string
		opens    string
	}{
		"no windows": {now: "2026-11-23T12:00:00Z", open: true},
		"before the window": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{weekly(weekend, 2, 0, 4*time.Hour, berlin)}},
			now:      "2026-11-27T23:00:00Z", next: "2026-11-28T02:00:00+01:00", opens: "2026-11-28T02:00:00+01:00",
		},
		"its first instant": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{weekly(weekend, 2, 0, 4*time.Hour, berlin)}},
			now:      "2026-11-28T02:00:00+01:00", open: true, next: "2026-11-28T06:00:00+01:00",
		},
		"its last instant is not in it": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{weekly(weekend, 2, 0, 4*time.Hour, berlin)}},
			now:      "2026-11-29T06:00:00+01:00", next: "2026-12-05T02:00:00+01:00", opens: "2026-12-05T02:00:00+01:00",
		},
		"over midnight": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{weekly(weekend, 22, 0, 4*time.Hour, berlin)}},
			now:      "2026-11-30T01:00:00+01:00", open: true, next: "2026-11-30T02:00:00+01:00",
		},
		"all day, every day": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{weekly(everyDay, 0, 0, 24*time.Hour, "UTC")}},
			now:      "2026-11-25T12:00:00Z", open: true, next: "2026-12-05T00:00:00Z",
		},
		"windows that touch": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{
				weekly([]time.Weekday{time.Wednesday}, 10, 0, 2*time.Hour, "UTC"), weekly([]time.Weekday{time.Wednesday}, 12, 0, time.Hour, "UTC"),
			}},
			now: "2026-11-25T10:30:00Z", open: true, next: "2026-11-25T13:00:00Z",
		},
		"a window inside another": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{
				weekly([]time.Weekday{time.Wednesday}, 10, 0, 4*time.Hour, "UTC"), weekly([]time.Weekday{time.Wednesday}, 11, 0, time.Hour, "UTC"),
			}},
			now: "2026-11-25T10:30:00Z", open: true, next: "2026-11-25T14:00:00Z",
		},
		"between the freezes, which of them comes first": {
			calendar: rollout.Calendar{Freezes: []rollout.Freeze{
				{Name: "last", From: timeAt(t, "2026-12-20T00:00:00Z"), Until: timeAt(t, "2027-01-02T00:00:00Z")},
				{Name: "next", From: timeAt(t, "2026-12-01T00:00:00Z"), Until: timeAt(t, "2026-12-02T00:00:00Z")},
				{Name: "over", From: timeAt(t, "2026-11-01T00:00:00Z"), Until: timeAt(t, "2026-11-02T00:00:00Z")},
			}},
			now: "2026-11-25T10:30:00Z", open: true, next: "2026-12-01T00:00:00Z",
		},
		"after all freezes": {
			calendar: rollout.Calendar{Freezes: []rollout.Freeze{{Name: "over", From: timeAt(t, "2026-11-01T00:00:00Z"), Until: timeAt(t, "2026-11-02T00:00:00Z")}}},
			now:      "2026-11-25T10:30:00Z", open: true,
		},
		"a freeze that begins when the window is over": {
			calendar: rollout.Calendar{
				Windows: []rollout.Weekly{weekly([]time.Weekday{time.Wednesday}, 10, 0, 2*time.Hour, "UTC")},
				Freezes: []rollout.Freeze{{Name: "next", From: timeAt(t, "2026-11-25T13:00:00Z"), Until: timeAt(t, "2026-11-26T00:00:00Z")}},
			},
			now: "2026-11-25T10:30:00Z", open: true, next: "2026-11-25T12:00:00Z",
		},
		"windows of two zones": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{
				weekly([]time.Weekday{time.Wednesday}, 10, 0, 2*time.Hour, berlin), weekly([]time.Weekday{time.Wednesday}, 5, 30, time.Hour, newYork),
			}},
			now: "2026-11-25T10:00:00+01:00", open: true, next: "2026-11-25T06:30:00-05:00",
		},
		"put forward past the start: Berlin": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{weekly(everyDay, 2, 30, time.Hour, berlin)}},
			now:      "2026-03-29T01:00:00+01:00", next: "2026-03-29T03:00:00+02:00", opens: "2026-03-29T03:00:00+02:00",
		},
		"and it lasts as long": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{weekly(everyDay, 2, 30, time.Hour, berlin)}},
			now:      "2026-03-29T03:59:59+02:00", open: true, next: "2026-03-29T04:00:00+02:00",
		},
		"put forward while open: Berlin": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{weekly(everyDay, 1, 30, 2*time.Hour, berlin)}},
			now:      "2026-03-29T01:45:00+01:00", open: true, next: "2026-03-29T04:30:00+02:00",
		},
		"put back over the start: Berlin": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{weekly(everyDay, 2, 30, time.Hour, berlin)}},
			now:      "2026-10-25T02:00:00+02:00", next: "2026-10-25T02:30:00+02:00", opens: "2026-10-25T02:30:00+02:00",
		},
		"and does not open twice": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{weekly(everyDay, 2, 30, time.Hour, berlin)}},
			now:      "2026-10-25T02:30:00+01:00", next: "2026-10-26T02:30:00+01:00", opens: "2026-10-26T02:30:00+01:00",
		},
		"put forward past the start: New York": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{weekly(everyDay, 2, 0, time.Hour, newYork)}},
			now:      "2026-03-08T01:59:59-05:00", next: "2026-03-08T03:00:00-04:00", opens: "2026-03-08T03:00:00-04:00",
		},
		"put back over the start: New York": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{weekly(everyDay, 1, 0, 90*time.Minute, newYork)}},
			now:      "2026-11-01T01:00:00-04:00", open: true, next: "2026-11-01T01:30:00-05:00",
		},
		"half an hour forward: Lord Howe": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{weekly(everyDay, 2, 15, time.Hour, lordHowe)}},
			now:      "2026-10-04T01:00:00+10:30", next: "2026-10-04T02:30:00+11:00", opens: "2026-10-04T02:30:00+11:00",
		},
		"half an hour back: Lord Howe": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{weekly(everyDay, 1, 45, time.Hour, lordHowe)}},
			now:      "2026-04-05T01:44:00+11:00", next: "2026-04-05T01:45:00+11:00", opens: "2026-04-05T01:45:00+11:00",
		},
		"a day that the calendar left out: Apia": {
			calendar: rollout.Calendar{Windows: []rollout.Weekly{weekly([]time.Weekday{time.Friday}, 2, 0, time.Hour, apia)}},
			now:      "2011-12-29T23:00:00-10:00", next: "2011-12-31T00:00:00+14:00", opens: "2011-12-31T00:00:00+14:00",
		},
		"a freeze": {
			calendar: rollout.Calendar{Freezes: []rollout.Freeze{{Name: "year-end", From: timeAt(t, "2026-12-18T00:00:00+01:00"), Until: timeAt(t, "2027-01-07T00:00:00+01:00")}}},
			now:      "2026-12-24T12:00:00Z", freeze: "year-end", next: "2027-01-07T00:00:00+01:00", opens: "2027-01-07T00:00:00+01:00",
		},
		"before a freeze": {
			calendar: rollout.Calendar{Freezes: []rollout.Freeze{{Name: "year-end", From: timeAt(t, "2026-12-18T00:00:00+01:00"), Until: timeAt(t, "2027-01-07T00:00:00+01:00")}}},
			now:      "2026-12-17T22:59:59Z", open: true, next: "2026-12-18T00:00:00+01:00",
		},
		"a freeze cuts a window": {
			calendar: rollout.Calendar{
				Windows: []rollout.Weekly{weekly(weekend, 2, 0, 4*time.Hour, "UTC")},
				Freezes: []rollout.Freeze{{Name: "sale", From: timeAt(t, "2026-11-28T03:00:00Z"), Until: timeAt(t, "2026-11-28T05:00:00Z")}},
			},
			now: "2026-11-28T02:00:00Z", open: true, next: "2026-11-28T03:00:00Z",
		},
		"and it goes on after it": {
			calendar: rollout.Calendar{
				Windows: []rollout.Weekly{weekly(weekend, 2, 0, 4*time.Hour, "UTC")},
				Freezes: []rollout.Freeze{{Name: "sale", From: timeAt(t, "2026-11-28T03:00:00Z"), Until: timeAt(t, "2026-11-28T05:00:00Z")}},
			},
			now: "2026-11-28T03:00:00Z", freeze: "sale", next: "2026-11-28T05:00:00Z", opens: "2026-11-28T05:00:00Z",
		},
		"the next window is frozen": {
			calendar: rollout.Calendar{
				Windows: []rollout.Weekly{weekly(weekend, 2, 0, 4*time.Hour, "UTC")},
				Freezes: []rollout.Freeze{
					{Name: "a", From: timeAt(t, "2026-11-28T00:00:00Z"), Until: timeAt(t, "2026-11-28T12:00:00Z")},
					{Name: "b", From: timeAt(t, "2026-11-28T12:00:00Z"), Until: timeAt(t, "2026-12-01T00:00:00Z")},
				},
			},
			now: "2026-11-27T00:00:00Z", next: "2026-12-05T02:00:00Z", opens: "2026-12-05T02:00:00Z",
		},
		"no window ever": {calendar: rollout.Calendar{Windows: []rollout.Weekly{weekly(nil, 2, 0, time.Hour, "UTC")}}, now: "2026-11-27T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			want := rollout.CalendarState{Open: test.open, Freeze: test.freeze, Next: timeAt(t, test.next), Opens: timeAt(t, test.opens)}
			if diff := cmp.Diff(want, test.calendar.At(timeAt(t, test.now))); diff != "" {
				t.Errorf("at %s (-want +got):\n%s", test.now, diff)
			}
		})
	}
}
