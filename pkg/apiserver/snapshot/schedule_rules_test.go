package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/metrics"
)

// TestOldestFirst: a name with a time in the future is from before the clock was set back, and sorts before all
// others.
func TestOldestFirst(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := func(hours int) Scheduled { return Scheduled{Taken: now.Add(time.Duration(hours) * time.Hour)} }

	got := oldestFirst([]Scheduled{at(-12), at(-1), at(0), at(1), at(9000)}, now)
	if diff := cmp.Diff([]Scheduled{at(1), at(9000), at(-12), at(-1), at(0)}, got); diff != "" {
		t.Error(diff)
	}
}

// TestNext: a failure to remove an old snapshot must not lead to new ones every few minutes, which push
// out those of the days before.
func TestNext(t *testing.T) {
	made, err := NewMetrics(metrics.NewKubeRegistry().Register)
	if err != nil {
		t.Fatal(err)
	}

	failed := errors.New("failed")

	for _, test := range []struct {
		name           string
		interval, want time.Duration
		taken          bool
		err            error
	}{
		{"taken", time.Hour, time.Hour, true, nil},
		{"taken, and an old one stays", time.Hour, time.Hour, true, failed},
		{"not taken", time.Hour, 5 * time.Minute, false, failed},
		{"not taken, short interval", time.Minute, time.Minute, false, failed},
	} {
		s := &Schedule{Interval: test.interval, Metrics: made}
		if got := s.next(test.taken, test.err); got != test.want {
			t.Errorf("%s: in %s, want %s", test.name, got, test.want)
		}
	}
}

// TestMakeRoom: who lowers Retention because the disk is full gets the space of the surplus, which no new snapshot would free.
func TestMakeRoom(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	full := fmt.Errorf("%w: 0 bytes free", errNoSpace)

	for name, test := range map[string]struct {
		problem error
		left    int
	}{
		"there is room":        {nil, 5},
		"the disk is full":     {full, 2},
		"etcd does not answer": {context.DeadlineExceeded, 5},
	} {
		dir := t.TempDir()

		for day := range 5 {
			if err := os.WriteFile(filepath.Join(dir, nameAt(now.AddDate(0, 0, day-5))), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}

		err := (&Schedule{Dir: dir, Retention: 2}).makeRoom(now, func() error {
			found, err := InDirectory(dir)
			if err != nil || len(found) == 2 {
				return err
			}

			return test.problem
		})
		found, listed := InDirectory(dir)

		if ok := test.problem == nil || test.left == 2; listed != nil || len(found) != test.left || (err == nil) != ok {
			t.Errorf("%s: %d left, %v", name, len(found), errors.Join(err, listed))
		}

		if len(found) > 0 && !found[len(found)-1].Taken.Equal(now.AddDate(0, 0, -1)) {
			t.Errorf("%s: the newest is gone", name)
		}
	}
}
