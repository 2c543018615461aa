package helm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
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
	// MaxHistory is how many revisions are kept; at least 1.
	MaxHistory int
}

// Request is one action to do.
type Request struct {
	// Decision says what to do.
	Decision Decision
	// Wanted is what was decided for.
	Wanted Wanted
	// Settings are how to do it.
	Settings Settings
	// Chart is needed to install and upgrade. It must not be used by anybody else: Helm changes it.
	Chart *chart.Chart
	// Values to render the chart with; of the other actions only what to keep out of messages.
	Values Values
}

// Run does one action and returns when it has ended: at the latest after the
// timeout and the grace. If ctx is cancelled the action is ended in order, and
// marked so that the next Decide begins it again under the same number. Errors
// are *Error.
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

	s, err := c.open(hard, request.Values)
	if err != nil {
		return classify("prepare "+string(request.Decision.Action), err, request.Values)
	}

	s.storage.hidden = request.Decision.Resume
	s.config.Releases.MaxHistory = request.Settings.MaxHistory

	err = c.attend(hard, soft, s, request)
	if err == nil {
		return nil
	}

	if ctx.Err() != nil {
		return c.interrupted(s, request, err)
	}

	if soft.Err() != nil {
		return &Error{Reason: ReasonTimeout, Message: fmt.Sprintf("%s did not end within %s: %s", request.Decision.Action,
			request.Settings.Timeout, request.Values.Redact(err.Error()))}
	}

	return classify(string(request.Decision.Action), err, request.Values)
}

// attend does the action and leaves it alone if it does not end with hard: a
// template that loops cannot be stopped. Nothing that is left alone reaches the
// cluster any more.
func (c *Client) attend(hard, soft context.Context, s *session, request Request) error {
	done := make(chan error, 1)

	go func() {
		// A chart that makes Helm panic must not end the controller, with all
		// that it does for others. The text of a panic may hold anything.
		defer func() {
			if cause := recover(); cause != nil {
				done <- fmt.Errorf("the chart makes Helm fail in a way that it does not handle (%T)", cause)
			}
		}()

		done <- c.act(hard, soft, s, request)
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
		return errors.New("Helm does not return; a template of the chart may loop without end")
	}
}

func (c *Client) act(hard, soft context.Context, s *session, request Request) error {
	if request.Chart != nil {
		if dropped := dropOutsideSchemas(request.Chart); len(dropped) > 0 {
			c.log.Info("values are not checked against schemas that are broken or refer to something outside the chart", "release", c.target.Name, "charts", dropped)
		}
	}

	switch request.Decision.Action {
	case ActionInstall:
		return c.install(hard, soft, s, request)
	case ActionUpgrade:
		return c.upgrade(soft, s, request)
	case ActionRollback:
		return c.rollBack(soft, s, request)
	case ActionUninstall:
		return c.uninstall(soft, s, request)
	case ActionTest:
		return c.test(soft, s, request)
	case ActionUnlock:
		return c.unlock(s, request.Decision.Revision)
	default:
		return fmt.Errorf("%q is nothing that can be done", request.Decision.Action)
	}
}

// waitStrategy is what Helm waits for. Hooks are always waited for.
func waitStrategy(wait bool) kube.WaitStrategy {
	if wait {
		return kube.StatusWatcherStrategy
	}

	return kube.HookOnlyStrategy
}

// rendering is the context that Helm gets: it ends with soft until the first
// record is made. After that Helm would only stop listening to its own work
// while that goes on, so the waits alone are ended.
func rendering(soft context.Context, s *session) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(soft))
	stop := context.AfterFunc(soft, cancel)
	s.storage.begun = func() { stop() }

	return ctx, cancel
}

func (r *Request) labels() map[string]string {
	labels := map[string]string{labelContent: r.Wanted.Content, labelAttempt: r.Wanted.Attempt, labelOwner: r.Wanted.Owner}

	if r.Chart != nil && r.Chart.Metadata != nil {
		labels[labelChartVersion] = versionLabel(r.Chart.Metadata.Version)
	}

	return labels
}

// versionLabel is a version as the value of a label: cut if it is too long, and
// without + and what may not stand at the end. It is only shown.
func versionLabel(version string) string {
	text := strings.ReplaceAll(version, "+", "_")

	return strings.TrimRight(text[:min(len(text), validation.LabelValueMaxLength)], "-_.")
}

// unlock marks a revision as failed whose action has no result. If it has one
// by now, that counts.
func (c *Client) unlock(s *session, revision int) error {
	return c.change(s, revision, func(record *releasev1.Release) {
		if status := Status(record.Info.Status); !status.pending() && status != StatusUnknown {
			return
		}

		record.SetStatus(common.StatusFailed, fmt.Sprintf("was left %s by an action that never ended", record.Info.Status))
	})
}

// interrupted marks a revision that a stop of the controller ended, so that it
// is made again under its own number. If there is no time for that, it stays
// pending, which leads to the same.
func (c *Client) interrupted(s *session, request Request, cause error) error {
	failure := &Error{Reason: ReasonInterrupted, Message: fmt.Sprintf("%s was interrupted by a stop of the controller: %s", request.Decision.Action,
		request.Values.Redact(cause.Error()))}

	if request.Decision.Action != ActionInstall && request.Decision.Action != ActionUpgrade {
		return failure
	}

	last, err := s.config.Releases.Last(c.target.Name)
	if err != nil {
		return failure
	}

	record, err := asRelease(last)
	if err != nil || record.Info.Status != common.StatusFailed || record.Labels[labelAttempt] != request.Wanted.Attempt {
		return failure
	}

	if err := c.change(s, record.Version, func(record *releasev1.Release) { record.Labels[labelInterrupted] = "true" }); err != nil {
		c.log.Info("an interrupted revision could not be marked", "release", c.target.Name, "error", err.Error())
	}

	return failure
}

// change reads, changes and writes the record of a revision.
func (c *Client) change(s *session, revision int, change func(*releasev1.Release)) error {
	var (
		found release.Releaser
		err   error
	)

	if found, err = s.config.Releases.Get(c.target.Name, revision); err != nil {
		return fmt.Errorf("read revision %d: %w", revision, err)
	}

	record, err := asRelease(found)
	if err != nil {
		return err
	}

	if record.Labels == nil {
		record.Labels = map[string]string{}
	}

	change(record)

	if err := s.config.Releases.Update(record); err != nil {
		return fmt.Errorf("write revision %d: %w", revision, err)
	}

	return nil
}

// createNamespace makes the release's namespace if it is missing. Who may not
// make namespaces may still use one that is there.
func (c *Client) createNamespace(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(bounded(ctx, c.target.Config))
	if err != nil {
		return fmt.Errorf("make a client for the workload cluster: %w", err)
	}

	namespaces := client.CoreV1().Namespaces()
	if _, err := namespaces.Get(ctx, c.target.Namespace, metav1.GetOptions{}); err == nil {
		return nil
	}

	_, err = namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.target.Namespace}}, metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %q: %w", c.target.Namespace, err)
	}

	return nil
}
