package embeddedetcd

import (
	"math"
	"strings"
	"testing"
	"time"
)

const mib = 1 << 20

func TestDecide(t *testing.T) {
	tests := []struct {
		name  string
		state databaseState
		due   bool
		want  upkeepAction
	}{
		{"small file", databaseState{size: 60 * mib, inUse: mib, quota: 2048 * mib}, true, nothing},
		{"half is free", databaseState{size: 100 * mib, inUse: 50 * mib, quota: 2048 * mib}, true, defragment},
		{"half is free, not yet due", databaseState{size: 100 * mib, inUse: 50 * mib, quota: 2048 * mib}, false, nothing},
		{"half is free, and was needed", databaseState{size: 100 * mib, inUse: 50 * mib, needed: 90 * mib, quota: 2048 * mib}, true, nothing},
		{"half is free, and was not needed", databaseState{size: 100 * mib, inUse: 40 * mib, needed: 50 * mib, quota: 2048 * mib}, true, defragment},
		{"much was needed near the quota", databaseState{size: 1700 * mib, inUse: 1300 * mib, needed: 1700 * mib, quota: 2048 * mib}, true, defragment},
		{"less is free", databaseState{size: 100 * mib, inUse: 51 * mib, quota: 2048 * mib}, true, nothing},
		{"less is free near the quota", databaseState{size: 1700 * mib, inUse: 1300 * mib, quota: 2048 * mib}, true, defragment},
		{"little is free near the quota", databaseState{size: 1700 * mib, inUse: 1600 * mib, quota: 2048 * mib}, true, nothing},
		{"full", databaseState{size: 2048 * mib, inUse: 2000 * mib, quota: 2048 * mib, full: true}, true, makeRoomAtQuota},
		{"full, no defragmentation wanted", databaseState{size: 2048 * mib, inUse: mib, quota: 2048 * mib, full: true}, false, makeRoomAtQuota},
		{"full before the quota was raised", databaseState{size: 2048 * mib, inUse: 2048 * mib, quota: 4096 * mib, full: true}, false, disarm},
		{"quota not known", databaseState{size: 100 * mib, inUse: 90 * mib}, true, nothing},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := decideUpkeep(test.state, test.due); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestDecideFull(t *testing.T) {
	tests := []struct {
		name  string
		state databaseState
		want  upkeepAction
	}{
		{"free space", databaseState{size: 2048 * mib, inUse: 1800 * mib, quota: 2048 * mib}, defragment},
		{"live content", databaseState{size: 2048 * mib, inUse: 1900 * mib, quota: 2048 * mib}, nothing},
		{"small file", databaseState{size: 1000 * mib, inUse: 900 * mib, quota: 2048 * mib}, nothing},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := decideFull(test.state); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	tests := []struct {
		name  string
		state databaseState
		want  string
	}{
		{"good", databaseState{size: 1800 * mib, inUse: 1800 * mib, quota: 2048 * mib}, ""},
		{
			"nearly full", databaseState{size: 1900 * mib, inUse: 1800 * mib, quota: 2048 * mib},
			"writes will soon be refused: the database has 1900 MiB of 2048 MiB (--etcd-quota-backend-bytes), 1800 MiB of them in use",
		},
		{"full", databaseState{size: 2048 * mib, inUse: 2000 * mib, quota: 2048 * mib, full: true}, "every write is refused: "},
		{"damaged", databaseState{quota: 2048 * mib, corrupt: true}, "restore a snapshot"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := describeState(test.state); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDue(t *testing.T) {
	now := time.Now()

	for _, test := range []struct {
		ago, interval time.Duration
		want          bool
	}{
		{time.Hour, time.Hour, true},
		{time.Minute, time.Hour, false},
		{time.Hour, 0, false},
	} {
		if got := isDue(now.Add(-test.ago), now, test.interval); got != test.want {
			t.Errorf("%s after an attempt, every %s: %t", test.ago, test.interval, got)
		}
	}
}

// What was needed is known when an interval is over, and counts once.
func TestNeededOf(t *testing.T) {
	k := &Keeper{DefragmentInterval: time.Hour, since: time.Now()}
	look := func(inUse int64) int64 { return k.neededOf(databaseState{size: 100 * mib, inUse: inUse * mib}) / mib }

	if got := look(90); got != 100 {
		t.Errorf("within the interval: %d", got)
	}

	k.since = time.Now().Add(-time.Hour)

	if got := look(20); got != 90 {
		t.Errorf("at its end: %d", got)
	}

	if got := look(30); got != 100 {
		t.Errorf("within the next one: %d", got)
	}

	k.since = time.Now().Add(-time.Hour)

	if got := look(20); got != 30 {
		t.Errorf("at the end of the next one: %d", got)
	}

	k.DefragmentInterval = 0
	if got := look(20); got != 100 {
		t.Errorf("never: %d", got)
	}
}

func TestRoomInMemory(t *testing.T) {
	for name, test := range map[string]struct {
		state       databaseState
		limit, used int64
		fits        bool
	}{
		"it fits":         {databaseState{inUse: 100 * mib}, 512 * mib, 300 * mib, true},
		"it does not":     {databaseState{inUse: 100 * mib}, 512 * mib, 320 * mib, false},
		"a full one":      {databaseState{inUse: 100 * mib, full: true}, 512 * mib, 320 * mib, true},
		"without a limit": {databaseState{inUse: 2048 * mib}, math.MaxInt64, 320 * mib, true},
	} {
		if err := test.state.roomInMemory(test.limit, test.used); (err == nil) != test.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}
