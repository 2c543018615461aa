package helm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/kubeclient"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
)

// abandonTime is how long an action may take to return when none of its
// requests is answered any more.
const abandonTime = 2 * time.Second

// Settings are how actions are done.
type Settings struct {
	// Timeout bounds one action, hooks and waiting included.
	Timeout time.Duration
	// Wait waits until the objects are ready, WaitForJobs also until Jobs are complete.
	Wait, WaitForJobs bool
	// DisableHooks runs no hooks, SkipCRDs installs no CRDs of the chart.
	DisableHooks, SkipCRDs bool
	// TakeOwnership takes over objects of others.
	TakeOwnership bool
	// CreateNamespace makes the namespace if it is missing.
	CreateNamespace bool
	// MaxHistory is how many revisions are kept; 0 keeps all of them.
	MaxHistory int
}

// Encode returns the settings as text. Digests of it are kept in statuses and in Helm's records: write a field that you add only
// if it is set, or every release that has used up its retries begins again.
func (s Settings) Encode() string {
	return fmt.Sprintf("timeout=%s;wait=%t;waitForJobs=%t;disableHooks=%t;skipCRDs=%t;takeOwnership=%t;createNamespace=%t;maxHistory=%d",
		s.Timeout, s.Wait, s.WaitForJobs, s.DisableHooks, s.SkipCRDs, s.TakeOwnership, s.CreateNamespace, s.MaxHistory)
}

// Request is one action to do.
type Request struct {
	// Decision says what to do.
	Decision Decision
	// Wanted is what was decided for.
	Wanted Wanted
	// Settings are how to do it.
	Settings Settings
	// Observed is what the decision was made from; nil if Run is to look itself.
	Observed *Observed
	// Chart is needed to install and upgrade.
	Chart Chart
	// Values to render the chart with; of the other actions only what to keep out of messages.
	Values values.Values
	// Begin is asked right before the action changes the first thing but its namespace, and maybe again later. An error ends
	// the action with nothing changed. May be nil.
	Begin func() error
	// Note is told what an operator wants to know beside the end of the action. May be nil.
	Note func(note Note, text string)
}

// Chart is a packed chart, which nobody has looked into yet but to see how large it is.
type Chart interface {
	// String is its name and version, for messages.
	String() string
	// Archive returns the gzipped tar file. It is asked for whenever the chart is rendered, and kept no longer.
	Archive(ctx context.Context) ([]byte, error)
	// Accept returns an error if a chart with this metadata is not the one that is meant, or cannot be installed.
	Accept(metadata *chart.Metadata) error
	// Invalid makes the error of an archive that holds no chart; why says what is wrong with it.
	Invalid(why string) error
}

// Note says what something is about that is told beside the end of an action.
type Note string

// The notes.
const (
	// NoteNamespaceCreated is of a namespace that was made for the release. It stays.
	NoteNamespaceCreated Note = "NamespaceCreated"
	// NoteObjectsKept is of objects that stay when the release goes, or does not name them any more: the chart keeps them, they
	// are somebody else's, or a revision that failed took them over.
	NoteObjectsKept Note = "ObjectsKept"
	// NoteObjectsGone is of objects of an older revision that an action did without: the workload cluster does not serve their
	// kinds any more.
	NoteObjectsGone Note = "ObjectsGone"
)

func (r *Request) note(note Note, text string) {
	if r.Note != nil {
		r.Note(note, text)
	}
}

// Run does one action and returns when it has ended: at the latest after the
// timeout and the grace. If ctx is cancelled the action is ended in order, and
// marked so that the next Decide begins it again under the same number. Errors
// are *Error, or those of the request's Chart.
func (c *Client) Run(ctx context.Context, request Request) error {
	if request.Settings.Timeout <= 0 {
		return &Error{Reason: ReasonFailed, Message: "the timeout must be more than 0"}
	}

	// Waiting ends with soft; what is left to do then has the grace.
	soft, cancelSoft := context.WithTimeout(ctx, request.Settings.Timeout)
	defer cancelSoft()

	hard, cancelHard := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelHard()

	defer context.AfterFunc(soft, func() { time.AfterFunc(c.grace, cancelHard) })()

	// A deletion that has found no memory for an hour leaves the release behind.
	memory := newMemoryShare(c.target.Tenant, request.Decision.Action == ActionUninstall)
	prepare := func() (*execution, error) { return c.newExecution(ctx, hard, soft, request, memory) }

	x, err := prepare()
	if err != nil {
		return classify("prepare "+string(request.Decision.Action), err, c.redactorFor(request.Values))
	}

	err = runBounded(hard, func() error {
		defer memory.giveBack()

		return memory.do(soft, func() error { return c.act(x) }, func() error {
			// What it has read must not be kept while it waits.
			fresh, err := prepare()
			if err == nil {
				*x = *fresh
			}

			return err
		})
	})
	if err == nil {
		return nil
	}

	return explainEnd(ctx, soft, x, request, err)
}

// explainEnd says why an action has failed.
func explainEnd(ctx, soft context.Context, x *execution, request Request, err error) error {
	var endless *endlessError
	if errors.As(err, &endless) {
		// Nothing that the action uses may be touched any more.
		return &Error{Reason: ReasonTimeout, Still: endless.returned, Message: fmt.Sprintf("%s did not end within %s: %s", request.Decision.Action,
			request.Settings.Timeout, endless)}
	}

	var unusable *unusableError
	if errors.As(err, &unusable) {
		return unusable.cause
	}

	if ctx.Err() != nil {
		// The revision is marked (see resumable), so that it is made again under its own number, or it stays pending, which
		// leads to the same.
		return &Error{Reason: ReasonInterrupted, Message: fmt.Sprintf("%s was interrupted by a stop of the controller: %s", request.Decision.Action,
			x.values.redact(err.Error()))}
	}

	if errors.As(err, new(*noMemoryError)) {
		return &Error{Reason: ReasonUnavailable, Message: fmt.Sprintf("%s was not tried: %s", request.Decision.Action, x.values.redact(err.Error()))}
	}

	if errors.As(err, new(*unwrittenError)) {
		return &Error{Reason: ReasonUnreachable, Message: fmt.Sprintf("%s: %s", request.Decision.Action, x.values.redact(err.Error()))}
	}

	if soft.Err() != nil {
		return &Error{Reason: ReasonTimeout, Message: fmt.Sprintf("%s did not end within %s: %s", request.Decision.Action,
			request.Settings.Timeout, x.values.redact(err.Error()))}
	}

	return classify(string(request.Decision.Action), err, x.values)
}

// runBounded does an action and leaves it alone if it does not end with hard: what
// Helm computes cannot be stopped. Nothing that is left alone reaches the cluster any
// more.
func runBounded(hard context.Context, act func() error) error {
	done, returned := make(chan error, 1), make(chan struct{})

	go func() {
		defer close(returned)
		// A chart that makes Helm panic must not end the controller, with all
		// that it does for others. The text of a panic may hold anything.
		defer func() {
			if cause := recover(); cause != nil {
				done <- fmt.Errorf("the chart makes Helm fail in a way that it does not handle (%T)", cause)
			}
		}()

		done <- act()
	}()

	select {
	case err := <-done:
		return err
	case <-hard.Done():
	}

	select {
	case err := <-done:
		return err
	case <-time.After(abandonTime):
		return &endlessError{returned}
	}
}

func (c *Client) act(x *execution) error {
	switch x.request.Decision.Action {
	case ActionInstall:
		return c.install(x)
	case ActionUpgrade:
		return c.upgrade(x)
	case ActionRollback:
		return c.rollBack(x)
	case ActionUninstall:
		return c.uninstall(x)
	case ActionTest:
		return c.test(x)
	case ActionUnlock:
		if err := x.mayChange(); err != nil {
			return err
		}

		return c.unlock(x, x.request.Decision.Revision)
	default:
		return fmt.Errorf("%q is nothing that can be done", x.request.Decision.Action)
	}
}

// waitStrategy is what Helm waits for. Hooks are always waited for.
func waitStrategy(wait bool) kube.WaitStrategy {
	if wait {
		return kube.StatusWatcherStrategy
	}

	return kube.HookOnlyStrategy
}

// rendering is the context for Helm. It ends with soft until the first record is made. Later Helm would stop waiting while its
// work goes on, so after that only the waits end.
func rendering(x *execution) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.soft))
	stop := context.AfterFunc(x.soft, cancel)
	x.storage.begun = func() { stop() }

	return ctx, cancel
}

// labels are those of the record that the action makes.
func (x *execution) labels() map[string]string {
	wanted := &x.request.Wanted
	labels := map[string]string{labelContent: wanted.Content, labelAttempt: wanted.Attempt, labelOwner: wanted.Owner, labelHub: wanted.Hub}

	labels[labelChartVersion] = versionLabel(x.storage.original.Metadata.Version)

	if x.storage.unchecked {
		labels[labelUnchecked] = "true"
	}

	return labels
}

// versionLabel is a version as the value of a label: cut if it is too long, and
// without + and what may not stand at the end. It is only shown.
func versionLabel(version string) string {
	text := strings.ReplaceAll(version, "+", "_")

	return strings.TrimRight(text[:min(len(text), validation.LabelValueMaxLength)], "-_.")
}

// createNamespace makes the release's namespace if it is missing. Who may not
// make namespaces may still use one that is there.
func (c *Client) createNamespace(x *execution) error {
	client, err := kubernetes.NewForConfig(kubeclient.Bounded(x.hard, c.target.Config))
	if err != nil {
		return fmt.Errorf("make a client for the workload cluster: %w", err)
	}

	namespaces := client.CoreV1().Namespaces()
	if _, err := namespaces.Get(x.hard, c.target.Namespace, metav1.GetOptions{}); err == nil {
		return nil
	}

	_, err = namespaces.Create(x.hard, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.target.Namespace}}, metav1.CreateOptions{FieldManager: FieldManager})

	switch {
	case err == nil:
		x.request.note(NoteNamespaceCreated, fmt.Sprintf("created namespace %s in the workload cluster; it stays when the release is uninstalled", c.target.Namespace))
	case !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("create namespace %q: %w", c.target.Namespace, err)
	}

	return nil
}
