package app

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/utc"
)

const (
	// programSelector finds the Pods of an installation by a label that the chart sets for both programs.
	programSelector = "app.kubernetes.io/part-of=omni-cluster-operator"
	// maxEvents, maxPods, maxLogLines and maxLogBytes bound what a bundle has of the management cluster.
	maxEvents   = 500
	maxPods     = 20
	maxLogLines = 20_000
	maxLogBytes = 1 << 20
	// fewLogLines are asked for when so many do not come in time.
	fewLogLines = 2000
)

// auditLine is what a line of omni-apiserver's audit log begins with. It is written to the same output as the program's own log,
// of which busy users leave little in the end of both, and says who does what, which is nobody else's business.
const auditLine = `{"kind":"Event","apiVersion":"audit.k8s.io/`

// addHub gathers what a bundle has besides our objects: events about them, and the Pods of our programs with the end of their
// logs. What may not be read is missing, with the reason.
func (b *bundle) addHub(ctx context.Context, hub kubernetes.Interface, namespace, programs string) {
	events, err := eventsOf(ctx, hub, namespace)
	if err != nil {
		b.miss("Event: %s", problemOf(err))
	}

	b.documents = append(b.documents, events...)

	pods, err := hub.CoreV1().Pods(programs).List(ctx, metav1.ListOptions{LabelSelector: programSelector, Limit: maxPods})

	switch {
	case err != nil:
		b.miss("Pod: %s", problemOf(err))

		return
	case len(pods.Items) == 0:
		b.miss("Pod: none of the programs in namespace %s: name it with --operator-namespace", programs)
	}

	for i := range pods.Items {
		b.addPod(ctx, hub, &pods.Items[i])
	}
}

// addPod gathers a Pod, and the end of its logs.
func (b *bundle) addPod(ctx context.Context, hub kubernetes.Interface, pod *corev1.Pod) {
	b.documents = append(b.documents, podOf(pod))
	b.hosts.add(pod.Spec.NodeName)

	for _, container := range pod.Spec.Containers {
		end, err := logOf(ctx, hub, pod, container.Name)
		if err != nil {
			b.miss("log of %s/%s: %s", pod.Name, container.Name, problemOf(err))

			continue
		}

		switch {
		case end.cut:
			b.miss("log of %s/%s: only the last %d KiB of its last %d lines", pod.Name, container.Name, maxLogBytes>>10, end.asked)
		case end.lines >= end.asked:
			b.miss("log of %s/%s: only what is the program's own of its last %d lines", pod.Name, container.Name, end.asked)
		}

		document := map[string]any{"kind": "Log", "pod": pod.Name, "container": container.Name, "text": end.text()}
		if end.audited > 0 {
			document["leftOut"] = fmt.Sprintf("%d lines of the audit log", end.audited)
		}

		b.documents = append(b.documents, document)
	}
}

// eventsOf are the events about our objects in a namespace, the latest first.
func eventsOf(ctx context.Context, hub kubernetes.Interface, namespace string) ([]map[string]any, error) {
	version := v1alpha1.SchemeGroupVersion.String()

	list, err := hub.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.apiVersion=" + version})
	if err != nil {
		return nil, err
	}

	events := slices.DeleteFunc(list.Items, func(event corev1.Event) bool { return event.InvolvedObject.APIVersion != version })
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return timeOf(b).Compare(timeOf(a)) })

	var documents []map[string]any

	for _, event := range events[:min(len(events), maxEvents)] {
		documents = append(documents, map[string]any{
			"kind": "Event", "object": event.InvolvedObject.Kind + "/" + event.InvolvedObject.Name, "type": event.Type, "reason": event.Reason,
			"message": event.Message, "time": utc.Text(timeOf(event)), "reporter": event.ReportingController,
		})
	}

	return documents, nil
}

// timeOf is when an event was last seen.
func timeOf(event corev1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	default:
		return event.LastTimestamp.Time
	}
}

// podOf is what a bundle has of a Pod: which program of which version it runs, and how it is.
func podOf(pod *corev1.Pod) map[string]any {
	var containers []any

	for _, status := range pod.Status.ContainerStatuses {
		container := map[string]any{
			"name": status.Name, "image": status.Image, "ready": status.Ready, "restarts": int64(status.RestartCount),
		}
		if last := status.LastTerminationState.Terminated; last != nil {
			container["lastEnd"] = map[string]any{"reason": last.Reason, "exitCode": int64(last.ExitCode), "time": utc.Text(last.FinishedAt.Time)}
		}

		containers = append(containers, container)
	}

	return map[string]any{"kind": "Pod", "name": pod.Name, "phase": string(pod.Status.Phase), "containers": containers}
}

// logOf is the end of a container's log.
func logOf(ctx context.Context, hub kubernetes.Interface, pod *corev1.Pod, container string) (end *logEnd, err error) {
	for _, lines := range []int{maxLogLines, fewLogLines} {
		end, err = lastLines(ctx, hub, pod, container, lines)
		if err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown { // an answer of the server is an answer
			break
		}
	}

	return end, err
}

// lastLines reads the last lines of a container's log. The server is not told the size: it would count from the oldest of the
// lines, and cut the newest off.
func lastLines(ctx context.Context, hub kubernetes.Interface, pod *corev1.Pod, container string, lines int) (*logEnd, error) {
	stream, err := hub.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, TailLines: new(int64(lines))}).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close()

	end := &logEnd{asked: lines, limit: maxLogBytes}

	return end, end.read(stream)
}

// logEnd is the end of a log without the lines of an audit log.
type logEnd struct {
	asked, lines int // how many lines were asked for, and came
	audited      int // lines of the audit log
	limit        int // in bytes
	kept         []byte
	cut          bool // whether older lines were cut off for their size
}

// read reads a log, in parts: a line may be of any length.
func (l *logEnd) read(stream io.Reader) error {
	reader := bufio.NewReader(stream)
	begins, audited := true, false

	for {
		part, err := reader.ReadSlice('\n')

		if begins && len(part) > 0 {
			l.lines++

			if audited = isAudit(part); audited {
				l.audited++
			}
		}

		if !audited {
			l.add(part)
		}

		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
			begins = err == nil
		case errors.Is(err, io.EOF):
			l.trim()

			return nil
		default:
			return err
		}
	}
}

// isAudit reports whether a line, or the begin of one, is of an audit log in one of the two formats of the API server's library.
func isAudit(line []byte) bool {
	return bytes.HasPrefix(line, []byte(auditLine)) || bytes.Contains(line[:min(len(line), 80)], []byte(" AUDIT: id="))
}

func (l *logEnd) add(part []byte) {
	if l.kept = append(l.kept, part...); len(l.kept) > 2*l.limit { // not for each line: it moves all that is kept
		l.trim()
	}
}

func (l *logEnd) trim() {
	if surplus := len(l.kept) - l.limit; surplus > 0 {
		l.kept, l.cut = append(l.kept[:0], l.kept[surplus:]...), true
	}
}

// text returns what is kept, without the part of a line at its begin.
func (l *logEnd) text() string {
	kept := l.kept
	if _, whole, found := bytes.Cut(kept, []byte("\n")); l.cut && found {
		kept = whole
	}

	return strings.ToValidUTF8(string(kept), "?")
}
