package app

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// A flag that a command does not heed is no flag of it: undo waits for nothing.
func TestUndoHasNoTimeout(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	for what, want := range map[string]string{"undo": "unknown flag: --timeout", "run": "nobody answers here"} {
		done := move(t, "migrate", what, "--yes", "--server", "https://hub.example.com", "--backup", filepath.Join(t.TempDir(), "backup"), "--timeout=1m")
		if done.err == nil || !strings.Contains(done.err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, done.err, want)
		}
	}
}

// The question names the management cluster: a forgotten --context is seen before anything is changed.
func TestTheQuestionNamesTheHub(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	for _, what := range []string{"run", "undo"} {
		s := newSession(t)
		s.input = "no\n"

		_, shown, err := s.run("migrate", what, "--server", "https://hub.example.com", "--backup", filepath.Join(t.TempDir(), "backup"))
		if !errors.Is(err, errNotConfirmed) || !strings.Contains(shown, "Management cluster: https://hub.example.com\n") {
			t.Errorf("%s: %v\n%s", what, err, shown)
		}
	}
}

// The help of run says what its status means, as docs/how-to/migrate.md does.
func TestRunSaysItsStatus(t *testing.T) {
	output, _, err := newSession(t).run("migrate", "run", "--help")
	if err != nil || !strings.Contains(output, "Its status is 0 if no other run is needed") {
		t.Errorf("%v\n%s", err, output)
	}
}
