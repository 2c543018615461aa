package e2e

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/env/kubectl"
)

// eventually ends every wait of these tests that would hang. What is waited for takes a second or two.
const eventually = await.Limit

// space is one test's namespace.
type space struct {
	t    *testing.T
	name string
	hub  *env.Stack // nil: the one that all tests share

	timeout time.Duration // of a wait; 0: eventually
}

// newSpace makes a namespace that lives as long as the test.
func newSpace(t *testing.T) *space {
	t.Helper()

	return newSpaceNamed(t, "")
}

// newSpaceNamed is newSpace for a test with several: the suffix tells them apart.
func newSpaceNamed(t *testing.T, suffix string) *space {
	t.Helper()

	name := "e2e-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-", ",", "").Replace(t.Name()))
	s := &space{t: t, name: strings.TrimRight(name[:min(len(name), 60-len(suffix))], "-") + suffix}
	t.Cleanup(s.removeKeys)
	t.Cleanup(func() { revive(t) })
	s.explainsFailure()

	// Not by kubectl: a process for each of hundreds of namespaces takes the time of the tests.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	if _, err := stack.Client().CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	return s
}

// removeKeys takes the keys of the namespace's connections away: their Omni has ended with the test, and the controller would call it
// as long as the others run. It keeps the keys of clusters that are left over, for a deletion in an Omni that does not exist any more.
func (s *space) removeKeys() {
	if s.hub != nil { // ends, too
		return
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), time.Minute)
	defer cancel()

	secrets := stack.Client().CoreV1().Secrets(s.name)
	if err := secrets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		s.t.Errorf("delete the Secrets of namespace %s: %v", s.name, err)
	}

	held, err := secrets.List(ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Errorf("list the Secrets of namespace %s: %v", s.name, err)

		return
	}

	for i := range held.Items {
		_, err := secrets.Patch(ctx, held.Items[i].Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			s.t.Errorf("release Secret %s of namespace %s: %v", held.Items[i].Name, s.name, err)
		}
	}
}

// reviving keeps tests that fail at the same time from starting a program twice.
var reviving sync.Mutex

// revive starts again what a test that failed has left stopped, so that the next ones tell something, too.
func revive(t *testing.T) {
	t.Helper()

	if !t.Failed() {
		return
	}

	reviving.Lock()
	defer reviving.Unlock()

	for _, program := range []interface {
		Running() bool
		Restart(ctx context.Context) error
	}{stack.OmniAPIServer, stack.Controller} {
		if program.Running() {
			continue
		}

		if err := program.Restart(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// stack is the management cluster that the namespace is on.
func (s *space) stack() *env.Stack {
	if s.hub == nil {
		return stack
	}

	return s.hub
}

// try runs kubectl in the namespace and returns what it printed on both streams.
func (s *space) try(args ...string) (string, error) {
	return s.tryInput("", args...)
}

func (s *space) tryInput(stdin string, args ...string) (string, error) {
	s.t.Helper()
	defer s.timed("kubectl " + strings.Join(args, " "))()

	stdout, stderr, err := s.stack().KubectlInput(s.t.Context(), strings.NewReader(stdin), append([]string{"-n", s.name}, args...)...)

	return stdout + stderr, err
}

// run is try for a call that has to succeed.
func (s *space) run(args ...string) string {
	s.t.Helper()

	out, err := s.try(args...)
	if err != nil {
		s.t.Fatal(err)
	}

	return out
}

// appliers are those of the management clusters, by the cluster.
var appliers sync.Map

// apply applies manifests that have to be accepted, as kubectl does.
func (s *space) apply(manifests ...string) {
	s.t.Helper()

	if err := s.tryApply(manifests...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *space) tryApply(manifests ...string) error {
	s.t.Helper()
	defer s.timed("apply")()

	found, ok := appliers.Load(s.stack())
	if !ok {
		found, _ = appliers.LoadOrStore(s.stack(), must(kubectl.NewApplier(s.stack().RESTConfig()))(s.t))

		// kubectl keeps what it has read of the kinds, too. A test that starts omni-apiserver again needs it: for some seconds
		// after that kube-apiserver lists none of ours, which kubectl takes for the truth if it is asked for "omni" then.
		s.run("api-resources", "--api-group="+v1alpha1.GroupName)
	}

	return found.(*kubectl.Applier).Apply(s.t.Context(), s.name, manifests...)
}

// kubectlApply is apply by kubectl itself, and returns what that prints.
func (s *space) kubectlApply(manifests ...string) string {
	s.t.Helper()

	out, err := s.tryInput(strings.Join(manifests, "\n---\n"), "apply", "-f", "-")
	if err != nil {
		s.t.Fatal(err)
	}

	return out
}

// refused applies a manifest that has to be refused, with every one of the texts in the error.
func (s *space) refused(manifest string, texts ...string) {
	s.t.Helper()

	out, err := s.tryInput(manifest, "apply", "-f", "-")
	if err == nil {
		s.t.Fatalf("was accepted: %s", out)
	}

	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			s.t.Errorf("the error does not say %q:\n%v", text, err)
		}
	}
}

// wait polls until check returns nil. It gives up when the controller that all tests share has
// ended by itself: nothing is done any more.
func (s *space) wait(what string, check func() error) {
	s.t.Helper()
	defer s.timed("the wait for " + what)()

	if err := env.Eventually(s.t.Context(), cmp.Or(s.timeout, eventually), what, func(context.Context) error {
		if s.hub == nil {
			if err := stack.Controller.Crashed(); err != nil {
				return env.GiveUp(err)
			}
		}

		return check()
	}); err != nil {
		s.t.Fatal(err)
	}
}

// waitCondition waits for a condition of the object's current generation with this status and
// reason (any reason if empty) whose message has the texts, and returns the message.
func (s *space) waitCondition(resource, name, conditionType string, status metav1.ConditionStatus, reason string, texts ...string) string {
	s.t.Helper()

	var message string

	what := fmt.Sprintf("%s/%s: %s=%s %s", resource, name, conditionType, status, reason)
	if len(texts) > 0 {
		what += fmt.Sprintf(" that says %q", texts)
	}

	s.wait(what, func() error {
		return followObject(s, resource, name, func(object anyKind, err error) error {
			if err == nil {
				message, err = object.condition(conditionType, status, reason)
			}

			if err == nil && !containsAll(message, texts) {
				err = fmt.Errorf("it says %q", message)
			}

			return err
		})
	})

	return message
}

// condition looks once for what waitCondition waits for.
func (s *space) condition(resource, name, conditionType string, status metav1.ConditionStatus, reason string) (message string, err error) {
	object, err := tryGet[anyKind](s, resource, name)
	if err != nil {
		return "", err
	}

	return object.condition(conditionType, status, reason)
}

// condition returns the message of a condition of the object's current generation with this status and reason (any reason
// if empty), or why there is none.
func (object anyKind) condition(conditionType string, status metav1.ConditionStatus, reason string) (message string, err error) {
	if object.Status.ObservedGeneration != object.Generation {
		return "", fmt.Errorf("observed generation %d of %d", object.Status.ObservedGeneration, object.Generation)
	}

	for _, c := range object.Status.Conditions {
		if c.Type == conditionType && c.Status == status && (reason == "" || c.Reason == reason) {
			return c.Message, nil
		}
	}

	return "", fmt.Errorf("conditions: %s", describe(object.Status.Conditions))
}

// anyKind is what all kinds have.
type anyKind struct {
	metav1.ObjectMeta `json:"metadata"`

	Status v1alpha1.ReconcileStatus `json:"status"`
}

func describe(conditions []metav1.Condition) string {
	var lines []string
	for _, c := range conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}

	return strings.Join(lines, "; ")
}
