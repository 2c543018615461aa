package app

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/version"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

const (
	// programSelector finds the Pods of an installation by a label that the chart sets for both programs.
	programSelector = "app.kubernetes.io/part-of=omni-cluster-operator"
	// operatorNamespace is where both programs run unless a flag says otherwise.
	operatorNamespace = "omni-cluster-operator-system"
	// maxEvents, maxPods, maxLogLines and maxLogBytes bound what a bundle has of the management cluster.
	maxEvents   = 500
	maxPods     = 20
	maxLogLines = 20_000
	maxLogBytes = 1 << 20
	// maxLogLine bounds a line of a log, in bytes.
	maxLogLine = 16 << 20
)

// auditLine is what a line of omni-apiserver's audit log begins with. It is written to the same output as the program's own log,
// of which busy users leave little in the end of both, and says who does what, which is nobody else's business.
const auditLine = `{"kind":"Event","apiVersion":"audit.k8s.io/`

func (t *tool) supportBundleCommand() *cobra.Command {
	file, programs, redacts := "", "", false

	command := &cobra.Command{
		Use:   "support-bundle",
		Short: "Write what helps others to help you: our objects without their contents, events, logs and versions",
		Long: `support-bundle writes the objects of omni.texashpc.com of a namespace as YAML, with a list of fields that were looked at: no Secret is
read, and values, patches, manifests, kernel arguments, diffs and foreign annotations are left out. Events about these objects, and the end
of the logs of omni-apiserver (without its audit log) and omni-controller, are in it as far as you may read them; what is missing is named.
Read it before you share it.`,
		Example: `  kubectl omni support-bundle -n fleet --redact --file bundle.yaml`,
		GroupID: groupLook,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			var r *anonymizer
			if redacts {
				r = &anonymizer{salt: rand.Text()}
			}

			gathered, err := t.gather(command.Context(), programs)
			if err != nil {
				return err
			}

			for _, missing := range gathered.missing {
				if _, err = fmt.Fprintf(t.ErrOut, "Missing: %s\n", missing); err != nil {
					return err
				}
			}

			text, err := textOf(gathered.finish(r))
			if err != nil {
				return err
			}

			if file == "" || file == "-" {
				_, err = t.Out.Write(text)
			} else {
				err = writeNew(file, text)
			}

			return cmp.Or(err, gathered.unread)
		},
	}
	command.Flags().StringVarP(&file, "file", "f", "", "The file to write, which must not exist. Default: standard output.")
	command.Flags().StringVar(&programs, "operator-namespace", operatorNamespace, "The namespace in which omni-apiserver and omni-controller run.")
	command.Flags().BoolVar(&redacts, "redact", false, "Replace hostnames and addresses by hashes of this bundle.")

	return command
}

// bundle is what is gathered for a support bundle.
type bundle struct {
	documents []map[string]any // the first one is about the bundle
	missing   []any            // what cannot be read, and why: texts
	unread    error            // why none of our objects is in it
	hosts     hostNames        // those that the documents have no field for
}

// gather reads what a bundle has. An error means that there is none: nothing can be read, or the user has interrupted it. While
// omni-apiserver is down, a bundle has what its Pods and the events say about that.
func (t *tool) gather(ctx context.Context, programs string) (*bundle, error) {
	namespace, err := t.namespace()
	if err != nil {
		return nil, err
	}

	client, err := t.rawClient()
	if err != nil {
		return nil, err
	}

	hub, err := t.hubClient()
	if err != nil {
		return nil, err
	}

	b := &bundle{documents: []map[string]any{{"kind": "SupportBundle", "namespace": namespace, "plugin": version.Get().String()}}, hosts: hostNames{}}

	if server, err := untilDone(ctx, hub.Discovery().ServerVersion); err == nil {
		b.documents[0]["kubernetes"] = server.GitVersion
	}

	if ctx.Err() == nil {
		b.unread = b.addObjects(ctx, client, namespace)
		b.addHub(ctx, hub, namespace, programs)
	}

	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case b.unread != nil && len(b.documents) == 1:
		return nil, b.unread
	default:
		return b, nil
	}
}

// addObjects gathers our objects. It fails if no kind of them can be listed.
func (b *bundle) addObjects(ctx context.Context, client dynamic.Interface, namespace string) error {
	var first error

	listed := false

	for _, plural := range []string{
		"omniconnections", "omniclusters", "omnicontrolplanes", "omniworkers", "omnimachines", "omnikubeconfigexports", "omnisecretsyncs", "omnihelmreleases",
		"omnirolloutpolicies",
	} {
		list, err := client.Resource(v1alpha1.SchemeGroupVersion.WithResource(plural)).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			b.miss("%s: %s", plural, problemOf(err))
			first = cmp.Or(first, fmt.Errorf("none of our objects can be read: list %s: %w", plural, err))

			continue
		}

		listed = true

		for i := range list.Items {
			b.documents = append(b.documents, shownOf(list.Items[i].Object))
		}
	}

	if listed {
		return nil
	}

	return first
}

// miss notes what a bundle does not have.
func (b *bundle) miss(format string, args ...any) {
	b.missing = append(b.missing, fmt.Sprintf(format, args...))
}

// finish returns the documents of a bundle, redacted if it is asked for.
func (b *bundle) finish(r *anonymizer) []map[string]any {
	if len(b.missing) > 0 {
		b.documents[0]["missing"] = b.missing
	}

	if r != nil {
		for _, document := range b.documents {
			b.hosts.gather(document)
		}

		r.learn(b.hosts)

		for i, document := range b.documents {
			b.documents[i] = r.document(document)
		}
	}

	return b.documents
}

func textOf(documents []map[string]any) ([]byte, error) {
	texts := make([][]byte, 0, len(documents))

	for _, document := range documents {
		text, err := yaml.Marshal(document)
		if err != nil {
			return nil, err
		}

		texts = append(texts, text)
	}

	return bytes.Join(texts, []byte("---\n")), nil
}

// writeNew writes a new file, or none. One that is there is not overwritten: it may have been sent.
func writeNew(name string, text []byte) error {
	opened, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	_, err = opened.Write(text)
	if err = errors.Join(err, opened.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}

	return nil
}

// addHub gathers what a bundle has besides our objects: events about them, and the Pods of our programs with the end of their
// logs. A thing that may not be read is named as missing, with the reason.
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
		end, err := lastLines(ctx, hub, pod, container.Name)
		if err != nil {
			b.miss("log of %s/%s: %s", pod.Name, container.Name, problemOf(err))

			continue
		}

		switch {
		case end.cut:
			b.miss("log of %s/%s: only the last %d KiB of its last %d lines", pod.Name, container.Name, maxLogBytes>>10, maxLogLines)
		case end.lines >= maxLogLines:
			b.miss("log of %s/%s: only what is the program's own of its last %d lines", pod.Name, container.Name, maxLogLines)
		}

		document := map[string]any{"kind": "Log", "pod": pod.Name, "container": container.Name, "text": strings.ToValidUTF8(string(end.kept), "?")}
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
			"message": event.Message, "time": words.Time(timeOf(event)), "reporter": event.ReportingController,
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
			container["lastEnd"] = map[string]any{"reason": last.Reason, "exitCode": int64(last.ExitCode), "time": words.Time(last.FinishedAt.Time)}
		}

		containers = append(containers, container)
	}

	return map[string]any{"kind": "Pod", "name": pod.Name, "phase": string(pod.Status.Phase), "containers": containers}
}

// lastLines reads the last lines of a container's log. The server is not told the size: it would count from the oldest of the
// lines, and cut the newest off.
func lastLines(ctx context.Context, hub kubernetes.Interface, pod *corev1.Pod, container string) (*logEnd, error) {
	stream, err := hub.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, TailLines: new(int64(maxLogLines))}).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close()

	end := &logEnd{}

	return end, end.read(stream)
}

// logEnd is the end of a log without the lines of an audit log.
type logEnd struct {
	lines, audited int // how many lines came, and those of the audit log among them
	kept           []byte
	cut            bool // whether older lines were cut off for their size
}

func (l *logEnd) read(stream io.Reader) error {
	scanner := bufio.NewScanner(stream)
	scanner.Buffer(nil, maxLogLine)

	for ; scanner.Scan(); l.lines++ {
		if isAudit(scanner.Bytes()) {
			l.audited++

			continue
		}

		l.kept = append(append(l.kept, scanner.Bytes()...), '\n')
		if len(l.kept) > 2*maxLogBytes { // not for each line: what is kept is copied
			l.trim()
		}
	}

	l.trim()

	return scanner.Err()
}

// trim keeps whole lines.
func (l *logEnd) trim() {
	if surplus := len(l.kept) - maxLogBytes; surplus > 0 {
		_, l.kept, _ = bytes.Cut(l.kept[surplus:], []byte("\n"))
		l.cut = true
	}
}

// isAudit reports whether a line is of an audit log in one of the two formats of the API server's library.
func isAudit(line []byte) bool {
	return bytes.HasPrefix(line, []byte(auditLine)) || bytes.Contains(line[:min(len(line), 80)], []byte(" AUDIT: id="))
}
