package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

const (
	// eventSource is the controller that events name as their source.
	eventSource = "omni-controller"
	// maxWaitingEvents is how many events wait to be written; one has about a kilobyte. Further ones are dropped.
	maxWaitingEvents = 10_000
	// maxNoteBytes is how long a note is at most. The API refuses an event whose note has more than 1024 bytes.
	maxNoteBytes = 1000
	// eventTimeout bounds one write. If the hub does not answer, it is tried again after eventPause, eventTries times in all.
	eventTimeout, eventPause, eventTries = 30 * time.Second, 10 * time.Second, 12
	// lastWrites is how long Stop waits for the events that were recorded before.
	lastWrites = 2 * time.Second
)

// eventRecorder writes events (events.k8s.io/v1) one after another. The recorder of client-go keeps each of them for 6 to 12
// minutes to count repetitions, without a limit: 13 MiB for 12,000.
type eventRecorder struct {
	scheme   *runtime.Scheme
	sink     events.EventSink
	instance string
	log      logr.Logger

	mu      sync.Mutex
	stopped bool
	waiting chan *eventsv1.Event
	done    chan struct{}
	cancel  context.CancelFunc
}

// startEvents returns a recorder that writes events to the sink and, at V(1), to the log. Stop it at the end.
func startEvents(scheme *runtime.Scheme, sink events.EventSink, log logr.Logger) (*eventRecorder, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find the host's name for events: %w", err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	r := &eventRecorder{
		scheme: scheme, sink: sink, instance: eventSource + "-" + host, log: log,
		waiting: make(chan *eventsv1.Event, maxWaitingEvents), done: make(chan struct{}), cancel: cancel,
	}

	go func() {
		defer close(r.done)

		for event := range r.waiting {
			r.write(ctx, event)
		}
	}()

	return r, nil
}

// Eventf implements events.EventRecorder. It does not wait for the write. A note of more than 1000 bytes is cut.
func (r *eventRecorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.AnnotatedEventf(regarding, related, nil, eventtype, reason, action, note, args...)
}

// AnnotatedEventf implements events.AnnotatedEventRecorder, as Eventf does.
func (r *eventRecorder) AnnotatedEventf(
	regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any,
) {
	about, err := reference.GetReference(r.scheme, regarding)
	if err != nil {
		r.log.Error(err, "An event is not recorded", "reason", reason)

		return
	}

	now := time.Now()
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: util.GenerateEventName(about.Name, now.UnixNano()), Namespace: about.Namespace, Annotations: annotations},
		EventTime:  metav1.NewMicroTime(now), ReportingController: eventSource, ReportingInstance: r.instance,
		Action: action, Reason: reason, Regarding: *about, Type: eventtype, Note: noteOf(note, args),
	}

	if event.Namespace == "" {
		event.Namespace = metav1.NamespaceDefault
	}

	if related != nil {
		event.Related, _ = reference.GetReference(r.scheme, related) // an event without it says more than none
	}

	r.record(event)
}

func noteOf(format string, args []any) string {
	return redact.Bounded(redact.Printable(strings.ToValidUTF8(fmt.Sprintf(format, args...), "?")), maxNoteBytes)
}

func (r *eventRecorder) record(event *eventsv1.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.stopped {
		return
	}

	select {
	case r.waiting <- event:
	default:
		r.log.V(1).Info("Too many events wait, so one is dropped", "reason", event.Reason, "object", event.Regarding.Name)
	}
}

// write writes an event, and tries again while the hub does not answer. An event that the hub refuses is lost.
func (r *eventRecorder) write(ctx context.Context, event *eventsv1.Event) {
	r.log.V(1).Info("Event", "object", event.Regarding.Namespace+"/"+event.Regarding.Name, "type", event.Type, "reason", event.Reason, "note", event.Note)

	for range eventTries {
		writing, cancel := context.WithTimeout(ctx, eventTimeout)
		_, err := r.sink.Create(writing, event)

		cancel()

		if err == nil || ctx.Err() != nil {
			return
		}

		if refused := apierrors.APIStatus(nil); errors.As(err, &refused) {
			r.refused(event, err)

			return
		}

		select {
		case <-ctx.Done():
		case <-time.After(eventPause):
		}
	}
}

// refused logs an event that nobody will see, as in a namespace that is being deleted: a warning may name what is left in a
// workload cluster.
func (r *eventRecorder) refused(event *eventsv1.Event, err error) {
	log := r.log
	if event.Type != corev1.EventTypeWarning {
		log = log.V(1)
	}

	log.Info("The hub refused an event", "object", event.Regarding.Namespace+"/"+event.Regarding.Name, "reason", event.Reason, "note", event.Note, "error", err.Error())
}

// Stop ends recording. The hub has two seconds to take what was recorded before; then, events that are not written yet are
// lost, and so are later ones. It can be called twice.
func (r *eventRecorder) Stop() {
	r.mu.Lock()

	if !r.stopped {
		r.stopped = true
		close(r.waiting)
	}

	r.mu.Unlock()

	select {
	case <-r.done:
	case <-time.After(lastWrites):
	}

	r.cancel()
}
