package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// eventually bounds every wait of these tests. What is waited for takes a second or two; the rest
// is room for a busy machine.
const eventually = 90 * time.Second

// space is one test's namespace, used through kubectl.
type space struct {
	t    *testing.T
	name string
	hub  *env.Stack // nil: the one that all tests share
}

// newSpace makes a namespace that lives as long as the test.
func newSpace(t *testing.T) *space {
	t.Helper()

	return newSpaceNamed(t, "")
}

// newSpaceNamed is newSpace for a test with several: the suffix tells them apart.
func newSpaceNamed(t *testing.T, suffix string) *space {
	t.Helper()

	name := "e2e-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	s := &space{t: t, name: name[:min(len(name), 60-len(suffix))] + suffix}
	s.run("create", "namespace", s.name)

	return s
}

// try runs kubectl in the namespace and returns what it printed on both streams.
func (s *space) try(args ...string) (string, error) {
	return s.tryInput("", args...)
}

func (s *space) tryInput(stdin string, args ...string) (string, error) {
	s.t.Helper()

	hub := s.hub
	if hub == nil {
		hub = stack
	}

	stdout, stderr, err := hub.KubectlInput(s.t.Context(), strings.NewReader(stdin), append([]string{"-n", s.name}, args...)...)

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

// apply applies manifests that have to be accepted.
func (s *space) apply(manifests ...string) string {
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

// get reads an object as JSON.
func get[T any](s *space, resource, name string) T {
	s.t.Helper()

	object, err := tryGet[T](s, resource, name)
	if err != nil {
		s.t.Fatal(err)
	}

	return object
}

func tryGet[T any](s *space, resource, name string) (T, error) {
	var object T

	out, err := s.try("get", resource, name, "-o", "json")
	if err != nil {
		return object, err
	}

	return object, json.Unmarshal([]byte(out), &object)
}

// wait polls until check returns nil.
func (s *space) wait(what string, check func() error) {
	s.t.Helper()

	if err := env.Eventually(s.t.Context(), eventually, what, func(context.Context) error { return check() }); err != nil {
		s.t.Fatal(err)
	}
}

// waitCondition waits for a condition of the object's current generation with this status and
// reason (any reason if empty), and returns its message.
func (s *space) waitCondition(resource, name, conditionType string, status metav1.ConditionStatus, reason string) string {
	s.t.Helper()

	var message string

	s.wait(fmt.Sprintf("%s/%s: %s=%s %s", resource, name, conditionType, status, reason), func() error {
		object, err := tryGet[anyKind](s, resource, name)
		if err != nil {
			return err
		}

		if object.Status.ObservedGeneration != object.Generation {
			return fmt.Errorf("observed generation %d of %d", object.Status.ObservedGeneration, object.Generation)
		}

		for _, c := range object.Status.Conditions {
			if c.Type == conditionType && c.Status == status && (reason == "" || c.Reason == reason) {
				message = c.Message

				return nil
			}
		}

		return fmt.Errorf("conditions: %s", describe(object.Status.Conditions))
	})

	return message
}

// waitGone waits until the object no longer exists.
func (s *space) waitGone(resource, name string) {
	s.t.Helper()

	s.wait(resource+"/"+name+" to be gone", func() error {
		out, err := s.try("get", resource, name, "-o", "jsonpath={.status.conditions}")
		if err != nil && strings.Contains(err.Error(), "NotFound") {
			return nil
		}

		return fmt.Errorf("still there: %s %w", out, err)
	})
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
