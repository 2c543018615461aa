package migratecommand

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
)

// Alone, as in omni-controller, the command has flags of its own for the management cluster. Below a command that has such
// flags it has none, which would hide the others.
func TestHub(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	elsewhere := func() (*rest.Config, error) { return nil, errors.New("found by others") }

	for name, test := range map[string]struct {
		make func(context.Context) *cobra.Command
		args []string
		want string
	}{
		"a kubeconfig": {make: New, args: []string{"--kubeconfig", "/nowhere/config"}, want: "find the management cluster: stat /nowhere/config"},
		"a context":    {make: New, args: []string{"--kubeconfig", kubeconfig, "--context", "staging"}, want: `context "staging" does not exist`},
		"by the parent": {
			make: func(ctx context.Context) *cobra.Command { return NewFor(ctx, elsewhere) },
			want: "find the management cluster: found by others",
		},
		"no flags beside the parent's": {
			make: func(ctx context.Context) *cobra.Command { return NewFor(ctx, elsewhere) },
			args: []string{"--context", "staging"}, want: "unknown flag: --context",
		},
	} {
		for _, what := range [][]string{{"plan"}, {"run", "--yes", "--backup", "f"}, {"undo", "--yes", "--backup", "f"}} {
			command := test.make(t.Context())
			command.SetArgs(append(what, test.args...))
			command.SetOut(io.Discard)
			command.SetErr(io.Discard)

			if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s, %s: %v, want %q", name, what[0], err, test.want)
			}
		}
	}
}

// A flag that a command does not heed is no flag of it: undo waits for nothing.
func TestUndoHasNoTimeout(t *testing.T) {
	elsewhere := func() (*rest.Config, error) { return nil, errors.New("found by others") }

	for what, want := range map[string]string{"undo": "unknown flag: --timeout", "run": "found by others"} {
		command := NewFor(t.Context(), elsewhere)
		command.SetArgs([]string{what, "--yes", "--backup", "f", "--timeout=1m"})
		command.SetOut(io.Discard)
		command.SetErr(io.Discard)

		if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
}

// The question names the management cluster: a forgotten --context is seen before anything is changed.
func TestTheQuestionNamesTheHub(t *testing.T) {
	hub := func() (*rest.Config, error) { return &rest.Config{Host: "https://hub.example.com"}, nil }

	for _, what := range []string{"run", "undo"} {
		var output strings.Builder

		command := NewFor(t.Context(), hub)
		command.SetArgs([]string{what, "--backup", filepath.Join(t.TempDir(), "backup")})
		command.SetIn(strings.NewReader("no\n"))
		command.SetOut(&output)

		if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(output.String(), "Management cluster: https://hub.example.com\n") {
			t.Errorf("%s: %v\n%s", what, err, &output)
		}
	}
}

// An interrupted question is not answered with yes.
func TestTheQuestionIsInterrupted(t *testing.T) {
	hub := func() (*rest.Config, error) { return &rest.Config{Host: "https://hub.example.com"}, nil }

	for _, what := range []string{"run", "undo"} {
		typed, keyboard := io.Pipe()
		ctx, interrupt := context.WithTimeout(t.Context(), 50*time.Millisecond)

		command := NewFor(ctx, hub)
		command.SetArgs([]string{what, "--backup", filepath.Join(t.TempDir(), "backup")})
		command.SetIn(typed)
		command.SetOut(io.Discard)

		ended := make(chan error, 1)
		go func() { ended <- command.ExecuteContext(ctx) }()

		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "nobody answered, and nothing was changed") {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(3 * time.Second):
			t.Errorf("%s goes on asking", what)
		}

		interrupt()
		_ = keyboard.Close()
	}
}

// The help of run says what its status means, as docs/how-to/migrate.md does.
func TestRunSaysItsStatus(t *testing.T) {
	var out strings.Builder

	command := New(t.Context())
	command.SetArgs([]string{"run", "--help"})
	command.SetOut(&out)

	if err := command.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), "Its status is 0 if no other run is needed") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
