package recorder

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
)

// written is a sink that remembers the names of objects, and how often an event was created or made a series.
type written struct {
	mu      sync.Mutex
	objects map[string]int
	patches int
}

func (w *written) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.objects[event.Regarding.Name]++

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
}

func TestNothingIsRecordedAfterStop(t *testing.T) {
	r, sink := startRecorder(t)

	r.Stop()
	r.Stop()
	record(r, "a")
	r.AnnotatedEventf(object("a"), nil, nil, corev1.EventTypeNormal, "Synced", "Sync", "it has")

	if objects, _ := sink.count(); objects != 0 {
		t.Errorf("%d events were written", objects)
	}
}

// Every event of a large fleet is written, and few of them stay in memory. Client-go's broadcaster alone keeps 18 MiB.
func TestManyEventsStayInBoundedMemory(t *testing.T) {
	const (
		total = 12 * maxEvents
		batch = 100 // client-go drops events if more than 1,000 wait
		bound = 8 << 20
	)

	r, sink := startRecorder(t)
	r.drain = 10 * time.Millisecond

	before := heap()

	for start := 0; start < total; start += batch {
		for i := range batch {
			record(r, fmt.Sprintf("%06d", start+i))
		}

		sink.waitFor(t, start+batch, 0)
	}

	time.Sleep(2 * r.drain)

	if grown := heap() - before; grown > bound {
		t.Errorf("%d events left %d KiB in memory, the bound is %d", total, grown>>10, bound>>10)
	}
}

// heap returns the bytes of the heap that are in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()

	var stats runtime.MemStats

	runtime.ReadMemStats(&stats)

	return int64(stats.HeapAlloc) //nolint:gosec // far below the limit
}
