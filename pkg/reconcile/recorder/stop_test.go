package recorder

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// slow is a hub that takes its time. A write whose context has ended by then is lost.
type slow struct {
	*written

	takes time.Duration
}

func (s slow) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(s.takes):
		return s.written.Create(ctx, event)
	}
}

// A status that is written at a stop has its events, too. A hub that does not answer does not hold the process.
func TestStopWaitsForTheLastEvents(t *testing.T) {
	for name, test := range map[string]struct {
		takes time.Duration
		want  int
	}{
		"at once": {0, 20}, "after half a second": {500 * time.Millisecond, 20}, "never": {time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			sink := slow{written: &written{objects: map[string]int{}}, takes: test.takes}

			r, err := New(scheme.Scheme, sink, "test", logr.Discard())
			if err != nil {
				t.Fatal(err)
			}

			for i := range 20 {
				record(r, string(rune('a'+i)))
			}

			begun := time.Now()
			r.Stop()

			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}

			if got, _ := sink.count(); got != test.want {
				t.Errorf("%d events are written, want %d", got, test.want)
			}
		})
	}
}
