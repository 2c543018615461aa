package app

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// hubEvents is a hub that takes its time for each event. A write whose context has ended by then is lost.
type hubEvents struct {
	events.EventSink

	takes time.Duration

	mu      sync.Mutex
	written int
	last    *eventsv1.Event
}

func (h *hubEvents) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(h.takes):
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	h.written++
	h.last = event

	return event, nil
}

func recordTo(t *testing.T, sink *hubEvents) *eventRecorder {
	t.Helper()

	r, err := startEvents(scheme.Scheme, sink, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(r.Stop)

	return r
}

func eventAbout(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
}

// The API refuses a note of more than 1024 bytes, and the event would be lost.
func TestLongNotesAreCut(t *testing.T) {
	for name, note := range map[string]string{"long": strings.Repeat("ä", 600), "no text": "\xff" + strings.Repeat("x", 2000), "commands": strings.Repeat("\x1b[31m\u202e\n", 200)} {
		sink := &hubEvents{}
		r := recordTo(t, sink)
		r.AnnotatedEventf(eventAbout("a"), eventAbout("b"), map[string]string{"k": "v"}, corev1.EventTypeNormal, "Long", "Test", "%s", note)
		r.Stop()

		got := sink.last
		if len(got.Note) > 1024 || !utf8.ValidString(got.Note) || strings.ContainsAny(got.Note, "\x1b\u202e\n") || !strings.HasSuffix(got.Note, "...") {
			t.Errorf("%s: a note of %d bytes", name, len(got.Note))
		}

		if got.Namespace != "team" || got.Regarding.Name != "a" || got.Related.Name != "b" || got.Annotations["k"] != "v" || got.EventTime.IsZero() {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A status that is written at a stop has its events, too. A hub that does not answer does not hold the process.
func TestStopWaitsForTheLastEvents(t *testing.T) {
	for name, test := range map[string]struct {
		takes time.Duration
		want  int
	}{
		"at once": {0, 20}, "after half a second": {25 * time.Millisecond, 20}, "never": {time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			sink := &hubEvents{takes: test.takes}
			r := recordTo(t, sink)

			for i := range 20 {
				r.Eventf(eventAbout(fmt.Sprint(i)), nil, corev1.EventTypeNormal, "Synced", "Sync", "it has")
			}

			begun := time.Now()
			r.Stop()
			r.Eventf(eventAbout("late"), nil, corev1.EventTypeNormal, "Synced", "Sync", "it has")
			r.Stop()

			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}

			sink.mu.Lock()
			defer sink.mu.Unlock()

			if sink.written != test.want {
				t.Errorf("%d events are written, want %d", sink.written, test.want)
			}
		})
	}
}

// While the hub does not answer, what waits to be written is bounded.
func TestWaitingEventsTakeBoundedMemory(t *testing.T) {
	r := recordTo(t, &hubEvents{takes: time.Hour})

	foreigntest.WantPeak(t, 16<<20, func() {
		for i := range 3 * maxWaitingEvents {
			r.Eventf(eventAbout(fmt.Sprint(i)), nil, corev1.EventTypeNormal, "Synced", "Sync", "%s has it", eventAbout("a").Name)
		}
	})
}
