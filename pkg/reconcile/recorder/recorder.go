package recorder

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

const (
	// maxEvents is how many events one broadcaster of client-go records. It keeps each for 6 to 12 minutes, a kilobyte and
	// more, to count it instead of writing it again, and knows no limit: a new cluster makes more than 20.
	maxEvents = 1000
	// drainTime is how long a replaced broadcaster may go on writing what it has taken. What the hub has not accepted by
	// then is lost.
	drainTime = 30 * time.Second
	// maxNoteBytes is how long a note is at most. The API refuses an event whose note has more than 1024 bytes, and
	// client-go then drops it.
	maxNoteBytes = 1000
	// While a broadcaster takes an event and passes it on, nothing shows that there is one: handTime is ample for that.
	// lastWrites is how long Stop waits for writes that have begun.
	handTime   = 100 * time.Millisecond
	lastWrites = 2 * time.Second
)

// Recorder records events of one reporting controller. The same event (object, type, reason and action) again is written
// as a series, as by client-go, unless a replacement of the broadcaster (after 1,000 events) or 6 minutes are between the
// two; the last count of a series that ends with a replacement is not written. It is safe for concurrent use.
type Recorder struct {
	scheme *runtime.Scheme
	sink   events.EventSink
	name   string
	log    logr.Logger
	drain  time.Duration
	writes atomic.Int32 // that have begun

	mu       sync.Mutex
	current  *broadcaster // nil after Stop
	recorded int          // by current
}

// broadcaster is one of client-go, at work.
type broadcaster struct {
	events.EventBroadcaster
	recorder events.EventRecorderLogger
	cancel   context.CancelFunc
}

// New returns a recorder that writes events to the sink and, at V(1), to the log. The scheme has to know the objects that
// events are about. Stop it at the end.
func New(scheme *runtime.Scheme, sink events.EventSink, name string, log logr.Logger) (*Recorder, error) {
	r := &Recorder{scheme: scheme, sink: sink, name: name, log: log, drain: drainTime}

	first, err := r.start()
	if err != nil {
		return nil, err
	}

	r.current = first

	return r, nil
}

func (r *Recorder) start() (*broadcaster, error) {
	ctx, cancel := context.WithCancel(logr.NewContext(context.Background(), r.log))
	started := &broadcaster{EventBroadcaster: events.NewBroadcaster(countedSink{EventSink: r.sink, writes: &r.writes}), cancel: cancel}

	if err := started.StartRecordingToSinkWithContext(ctx); err != nil {
		started.stop()

		return nil, fmt.Errorf("start recording events: %w", err)
	}

	// What it returns would stop it alone; Shutdown stops both.
	if _, err := started.StartLogging(r.log.V(1)); err != nil {
		started.stop()

		return nil, fmt.Errorf("start the log of events: %w", err)
	}

	started.recorder = started.NewRecorder(r.scheme, r.name)

	return started, nil
}

func (b *broadcaster) stop() {
	b.Shutdown()
	b.cancel()
}

// Eventf implements events.EventRecorder. It does not wait for the write. A note of more than 1000 bytes is cut.
func (r *Recorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if recorder := r.next(); recorder != nil {
		recorder.Eventf(regarding, related, eventtype, reason, action, "%s", noteOf(note, args))
	}
}

// AnnotatedEventf implements events.AnnotatedEventRecorder, as Eventf does.
func (r *Recorder) AnnotatedEventf(
	regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any,
) {
	if annotated, ok := r.next().(events.AnnotatedEventRecorder); ok {
		annotated.AnnotatedEventf(regarding, related, annotations, eventtype, reason, action, "%s", noteOf(note, args))
	}
}

func noteOf(format string, args []any) string {
	return redact.Bounded(redact.Printable(strings.ToValidUTF8(fmt.Sprintf(format, args...), "?")), maxNoteBytes)
}

// next returns what records the next event; nil after Stop.
func (r *Recorder) next() events.EventRecorder {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.current == nil {
		return nil
	}

	if r.recorded == maxEvents {
		r.replace()
	}

	r.recorded++

	return r.current.recorder
}

// replace starts another broadcaster, and forgets with this one what it has recorded.
func (r *Recorder) replace() {
	fresh, err := r.start()
	if err != nil {
		r.log.Error(err, "Events are recorded as before, and more of them are kept in memory")

		r.recorded = 0

		return
	}

	time.AfterFunc(r.drain, r.current.stop)

	r.current, r.recorded = fresh, 0
}

// Stop ends recording. The hub has two seconds to take what was recorded before; then, events that are not written yet are
// lost, and so are later ones. What a replaced broadcaster has taken may still be written. It can be called twice.
func (r *Recorder) Stop() {
	r.mu.Lock()
	last := r.current
	r.current = nil
	r.mu.Unlock()

	if last == nil {
		return
	}

	end := time.Now().Add(lastWrites)

	time.Sleep(handTime)

	for r.writes.Load() > 0 && time.Now().Before(end) {
		time.Sleep(handTime / 10)
	}

	last.stop()
}

// countedSink counts the writes that have begun.
type countedSink struct {
	events.EventSink

	writes *atomic.Int32
}

// Create implements events.EventSink.
func (s countedSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s.writes.Add(1)
	defer s.writes.Add(-1)

	return s.EventSink.Create(ctx, event)
}

// Patch implements events.EventSink: an event that was told before is counted there.
func (s countedSink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	s.writes.Add(1)
	defer s.writes.Add(-1)

	return s.EventSink.Patch(ctx, event, data)
}
