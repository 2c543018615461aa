package app

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	maxLogLines = 2000
	maxLogBytes = 1 << 20
)

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
		log, cut, err := logOf(ctx, hub, pod, container.Name)
		if err != nil {
			b.miss("log of %s/%s: %s", pod.Name, container.Name, problemOf(err))

			continue
		}

		if cut {
			b.miss("log of %s/%s: only the last %d KiB of its last %d lines", pod.Name, container.Name, maxLogBytes>>10, maxLogLines)
		}

		b.documents = append(b.documents, map[string]any{"kind": "Log", "pod": pod.Name, "container": container.Name, "text": log})
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

// logOf is the end of a container's log, and whether older lines were cut off for its size. The server is not told the size:
// it would count from the oldest of the lines, and cut the newest off.
func logOf(ctx context.Context, hub kubernetes.Interface, pod *corev1.Pod, container string) (text string, cut bool, err error) {
	lines := int64(maxLogLines)

	stream, err := hub.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, TailLines: &lines}).Stream(ctx)
	if err != nil {
		return "", false, err
	}
	defer stream.Close()

	end := &tail{limit: maxLogBytes}
	_, err = io.Copy(end, stream)

	return strings.ToValidUTF8(string(end.text()), "?"), end.cut, err
}

// tail is a Writer that keeps the last bytes of what is written to it.
type tail struct {
	limit int // in bytes
	kept  []byte
	cut   bool
}

func (t *tail) Write(text []byte) (int, error) {
	t.kept = append(t.kept, text...)

	if surplus := len(t.kept) - t.limit; surplus > 0 {
		t.kept, t.cut = append(t.kept[:0], t.kept[surplus:]...), true
	}

	return len(text), nil
}

// text returns what is kept, without the part of a line at its begin.
func (t *tail) text() []byte {
	if _, whole, found := bytes.Cut(t.kept, []byte("\n")); t.cut && found {
		return whole
	}

	return t.kept
}
