package trigger

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: name}}
}

func newQueue(t *testing.T) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	t.Helper()

	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)

	return queue
}

func TestTriggerWakes(t *testing.T) {
	trigger := New[string](Pacing{})
	queue := newQueue(t)

	trigger.Fire("before the start")

	start := trigger.Source(func(_ context.Context, key string) []reconcile.Request {
		return []reconcile.Request{request(key + " 1"), request(key + " 2")}
	})
	if err := start.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{"before the start 1", "before the start 2"} {
		if got, _ := queue.Get(); got != request(want) {
			t.Errorf("%v, want %q", got, want)
		}
	}

	trigger.Fire("later")

	if got, _ := queue.Get(); got != request("later 1") {
		t.Error(got)
	}
}

func TestTriggerGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trigger := New[string](Pacing{Delay: 50 * time.Millisecond})
		queue := newQueue(t)

		start := trigger.Source(func(context.Context, string) []reconcile.Request { return []reconcile.Request{request("demo")} })
		if err := start.Start(t.Context(), queue); err != nil {
			t.Fatal(err)
		}

		for range 1000 {
			trigger.Fire("demo")
			synctest.Wait() // until it has been looked at
		}

		if got, _ := queue.Get(); got != request("demo") {
			t.Error(got)
		}

		queue.Done(request("demo"))
		time.Sleep(time.Second)
		synctest.Wait()

		if left := queue.Len(); left != 0 {
			t.Errorf("%d requests more", left)
		}
	})
}

// Callbacks may come until the very end of the process.
func TestTriggerAfterTheEnd(t *testing.T) {
	trigger := New[string](Pacing{})
	ctx, stop := context.WithCancel(t.Context())

	if err := trigger.Source(func(context.Context, string) []reconcile.Request { return nil }).Start(ctx, newQueue(t)); err != nil {
		t.Fatal(err)
	}

	stop()

	for range 1000 {
		trigger.Fire("demo")
	}
}

// A storm wakes an object at most once in each spacing, and once more after its end.
func TestTriggerSpacesAStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay, spacing = 10 * time.Millisecond, 100 * time.Millisecond

		trigger := New[string](Pacing{Delay: delay, Spacing: spacing})
		queue := newQueue(t)

		start := trigger.Source(func(context.Context, string) []reconcile.Request { return []reconcile.Request{request("demo")} })
		if err := start.Start(t.Context(), queue); err != nil {
			t.Fatal(err)
		}

		taken := wakings(queue)
		begun := time.Now()
		last := begun

		for range 500 { // changes in half a second
			last = time.Now()
			trigger.Fire("demo")
			time.Sleep(time.Millisecond)
		}

		time.Sleep(10 * spacing)
		synctest.Wait()

		var woken []time.Duration
		for len(taken) > 0 {
			woken = append(woken, (<-taken).Sub(begun))
		}

		checkWakings(t, woken, last.Sub(begun), delay, spacing)
	})
}

// wakings is when objects are taken from the queue.
func wakings(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) chan time.Time {
	woken := make(chan time.Time, 1000)

	go func() {
		for {
			got, shutdown := queue.Get()
			if shutdown {
				return
			}

			woken <- time.Now()

			queue.Done(got)
		}
	}()

	return woken
}

func checkWakings(t *testing.T, woken []time.Duration, last, delay, spacing time.Duration) {
	t.Helper()

	if limit := int(last/spacing) + 2; len(woken) < 3 || len(woken) > limit {
		t.Fatalf("woken %d times in %s, wanted 3 to %d", len(woken), last, limit)
	}

	if woken[0] != delay {
		t.Errorf("woken for the first time after %s", woken[0])
	}

	for i := range woken[1:] {
		if apart := woken[i+1] - woken[i]; apart < spacing {
			t.Errorf("woken after %s, and again %s later", woken[i], apart)
		}
	}

	if final := woken[len(woken)-1]; final < last || final > last+spacing {
		t.Errorf("the last change came after %s, the last waking after %s", last, final)
	}
}

// The changes of an object that does not come to rest are gathered for longer and longer, until it does.
func TestTimetableGrows(t *testing.T) {
	const step = 10 // milliseconds

	start := time.Unix(1000, 0)
	table := newTimetable(Pacing{Delay: 100 * time.Millisecond, Spacing: 400 * time.Millisecond, LongestSpacing: 2 * time.Second})
	change := func(after int) int {
		now := start.Add(time.Duration(after) * time.Millisecond)

		return int(now.Add(table.wait(request("demo").NamespacedName, now)).Sub(start).Milliseconds())
	}

	var woken []int

	for now := 0; now < 8000; now += step {
		if due := change(now); !slices.Contains(woken, due) {
			woken = append(woken, due)
		}
	}

	if diff := cmp.Diff([]int{100, 500, 1300, 2900, 4900, 6900, 8900}, woken); diff != "" {
		t.Errorf("woken at (milliseconds): %s", diff)
	}

	// After a rest the first change counts at once again.
	for _, want := range [][2]int{{11000, 11100}, {11200, 11500}} {
		if due := change(want[0]); due != want[1] {
			t.Errorf("the change at %d wakes at %d, want %d", want[0], due, want[1])
		}
	}
}

func TestTimetable(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(milliseconds int) time.Time { return start.Add(time.Duration(milliseconds) * time.Millisecond) }
	table := newTimetable(Pacing{Delay: 100 * time.Millisecond, Spacing: 300 * time.Millisecond})

	for _, step := range []struct {
		name string
		now  int // milliseconds
		want int // is woken at
	}{
		{"a", 0, 100},       // the first change
		{"a", 60, 100},      // another, before the waking
		{"b", 70, 170},      // somebody else's storm is no concern of b
		{"a", 101, 400},     // right after the waking: after the spacing
		{"a", 399, 400},     // the same waking
		{"a", 500, 700},     // still a storm
		{"a", 2000, 2100},   // quiet for long: the delay alone
		{"a", 2350, 2450},   // the spacing is over before the delay is
		{"a", 90000, 90100}, // after old records were removed
	} {
		if got := table.wait(request(step.name).NamespacedName, at(step.now)); !at(step.now).Add(got).Equal(at(step.want)) {
			t.Errorf("%s at %d: woken at %s, want %d", step.name, step.now, at(step.now).Add(got).Sub(start), step.want)
		}
	}

	if len(table.entries) != 1 {
		t.Errorf("%d objects are remembered", len(table.entries))
	}
}
