package recorder

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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/foreigntest"
)

// written is a sink that remembers how many events of each object were created, how many became a series, and the
// annotations of the last.
type written struct {
	mu          sync.Mutex
	objects     map[string]int
	patches     int
	annotations map[string]string
	note        string
}

func (w *written) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if err := ctx.Err(); err != nil {
		return nil, err
	}

	w.objects[event.Regarding.Name]++
	w.annotations, w.note = event.Annotations, event.Note

	return event, nil
}

func (w *written) Update(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return event, nil
}

func (w *written) Patch(_ context.Context, event *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.patches++

	return event, nil
}

func (w *written) count() (objects, patches int) {
	w.mu.Lock()
	defer w.mu.Unlock()

	return len(w.objects), w.patches
}

// waitFor waits until so many objects have an event, and so many events are a series.
func (w *written) waitFor(t *testing.T, objects, patches int) {
	t.Helper()

	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		gotObjects, gotPatches := w.count()

		return gotObjects >= objects && gotPatches >= patches, nil
	}); err != nil {
		gotObjects, gotPatches := w.count()
		t.Fatalf("%d objects and %d series were written, want %d and %d", gotObjects, gotPatches, objects, patches)
	}
}

func object(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
	}
}

func startRecorder(t *testing.T) (*Recorder, *written) {
	t.Helper()

	sink := &written{objects: map[string]int{}}

	r, err := New(scheme.Scheme, sink, "omni-controller", logr.Discard())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(r.Stop)

	return r, sink
}

func record(r *Recorder, name string) {
	r.Eventf(object(name), nil, corev1.EventTypeNormal, "Synced", "Sync", "%s has it", name)
}

func TestTheSameEventAgainIsASeries(t *testing.T) {
	r, sink := startRecorder(t)

	record(r, "a")
	sink.waitFor(t, 1, 0)
	record(r, "a")
	sink.waitFor(t, 1, 1)

	if sink.objects["a"] != 1 {
		t.Errorf("the event was created %d times", sink.objects["a"])
	}
}

func TestAnnotatedEvent(t *testing.T) {
	r, sink := startRecorder(t)

	r.AnnotatedEventf(object("a"), nil, map[string]string{"k": "v"}, corev1.EventTypeNormal, "Synced", "Sync", "it has")
	sink.waitFor(t, 1, 0)

	if sink.annotations["k"] != "v" {
		t.Errorf("it has the annotations %v", sink.annotations)
	}
}

func TestNothingIsRecordedAfterStop(t *testing.T) {
	r, sink := startRecorder(t)

	r.Stop()
	r.Stop()
	record(r, "a")
	r.AnnotatedEventf(object("a"), nil, nil, corev1.EventTypeNormal, "Synced", "Sync", "it has")

	if objects, _ := sink.count(); objects != 0 || r.next() != nil {
		t.Errorf("%d events were written, and the next one goes to %v", objects, r.next())
	}
}

// What a broadcaster has taken is written after its replacement, too.
func TestAReplacedBroadcasterWritesWhatItHas(t *testing.T) {
	const held = 50

	r, sink := startRecorder(t)

	for i := range maxEvents - held {
		record(r, fmt.Sprintf("%06d", i))

		if i%held == 0 {
			sink.waitFor(t, i+1, 0)
		}
	}

	sink.waitFor(t, maxEvents-held, 0)
	before := r.current
	sink.mu.Lock()

	for i := range 2 * held {
		record(r, fmt.Sprintf("held %06d", i))
	}

	if r.current == before {
		t.Error("the broadcaster was not replaced")
	}

	sink.mu.Unlock()
	sink.waitFor(t, maxEvents+held, 0)
}

// Every event of a large fleet is written, and few of them are in memory at any time.
func TestManyEventsTakeBoundedMemory(t *testing.T) {
	const (
		total = 12 * maxEvents
		batch = 100 // client-go drops events if more than 1,000 wait
		bound = 8 << 20
	)

	r, sink := startRecorder(t)
	r.drain = 10 * time.Millisecond

	foreigntest.WantPeak(t, bound, func() {
		for start := 0; start < total; start += batch {
			for i := range batch {
				record(r, fmt.Sprintf("%06d", start+i))
			}

			sink.waitFor(t, start+batch, 0)
		}
	})
}

// The API refuses a note of more than 1024 bytes, and the event would be lost.
func TestLongNotesAreCut(t *testing.T) {
	for name, note := range map[string]string{"long": strings.Repeat("ä", 600), "no text": "\xff" + strings.Repeat("x", 2000), "commands": strings.Repeat("\x1b[31m\u202e\n", 200)} {
		r, sink := startRecorder(t)

		r.Eventf(object("a"), nil, corev1.EventTypeNormal, "Long", "Test", "%s", note)
		sink.waitFor(t, 1, 0)
		first := sink.note

		r.AnnotatedEventf(object("b"), nil, nil, corev1.EventTypeNormal, "Long", "Test", "%s", note)
		sink.waitFor(t, 2, 0)

		if first != sink.note || len(first) > 1024 || !utf8.ValidString(first) || strings.ContainsAny(first, "\x1b\u202e\n") || !strings.HasSuffix(first, "...") {
			t.Errorf("%s: notes of %d and %d bytes", name, len(first), len(sink.note))
		}
	}
}
