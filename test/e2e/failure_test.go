package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// What a test that fails tells: how far it came and how long that took, what its objects say, and where the logs are.

const (
	// longStep is what a step takes that is worth a line in the test's log, which is shown if the test fails.
	longStep = 2 * time.Second
	// shownObjects is how many objects of a kind a failed test shows: some tests make hundreds.
	shownObjects = 20
)

// timed begins a step. The function that it returns ends it.
func (s *space) timed(step string) (done func()) {
	begun := time.Now()

	return func() {
		s.t.Helper()

		if took := time.Since(begun); took >= longStep {
			s.t.Logf("%s took %s", step, took.Round(100*time.Millisecond))
		}
	}
}

// explainsFailure makes a test that fails show the conditions of its objects in this namespace, and say where the logs are.
func (s *space) explainsFailure() {
	t := s.t
	t.Helper()

	t.Cleanup(func() {
		if !t.Failed() {
			return
		}

		// The test's own context has ended.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()

		t.Logf("objects in namespace %s:\n%s", s.name, s.objects(ctx))
		saveLogs(t, s.stack().Hub, s.logsName())
	})
}

// logsName is the name of the folder for the logs of the namespace's cluster.
func (s *space) logsName() string {
	if s.hub == nil {
		return "shared"
	}

	return s.t.Name()
}

// objects are those of our kinds in the namespace, each with its generation and conditions.
func (s *space) objects(ctx context.Context) string {
	var lines []string

	for _, resource := range shortNames {
		body, err := s.stack().Client().CoreV1().RESTClient().Get().AbsPath(s.path(resource)).Do(ctx).Raw()
		if err != nil {
			lines = append(lines, fmt.Sprintf("%s: %v", resource, err))

			continue
		}

		var list struct {
			Items []anyKind `json:"items"`
		}

		if err := json.Unmarshal(body, &list); err != nil {
			lines = append(lines, fmt.Sprintf("%s: %v", resource, err))
		}

		for _, object := range list.Items[:min(len(list.Items), shownObjects)] {
			deleting := ""
			if object.DeletionTimestamp != nil {
				deleting = fmt.Sprintf(", deleted at %s, finalizers %v", object.DeletionTimestamp, object.Finalizers)
			}

			lines = append(lines, fmt.Sprintf("%s/%s: observed generation %d of %d%s: %s", resource, object.Name,
				object.Status.ObservedGeneration, object.Generation, deleting, describe(object.Status.Conditions)))
		}

		if more := len(list.Items) - shownObjects; more > 0 {
			lines = append(lines, fmt.Sprintf("%s: %d more", resource, more))
		}
	}

	return strings.Join(lines, "\n")
}

// saveLogs copies the logs of a cluster's processes as they are now, over those that an earlier failure has left.
func saveLogs(t *testing.T, hub *env.Hub, name string) {
	t.Helper()

	to, err := hub.SaveLogs(name)
	if err != nil {
		t.Logf("the logs cannot be kept: %v", err)

		return
	}

	t.Logf("logs: %s", to)
}
