package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newTestComponent returns a component whose program is a shell script, on a hub without a
// control plane.
func newTestComponent(t *testing.T, script string) *component {
	t.Helper()

	h := &Hub{Dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(h.Dir, "logs"), 0o700); err != nil {
		t.Fatal(err)
	}

	c := &component{hub: h, spec: processSpec{name: "script", binary: "sh", args: []string{"-c", script}}}
	c.ready = func(context.Context) error {
		if logTail(c.LogPath(), 1) != fmt.Sprintf("up %d", c.current.pid) {
			return errors.New("not up")
		}

		return nil
	}

	return c
}

func TestComponentLife(t *testing.T) {
	c := newTestComponent(t, "trap 'echo bye; exit 0' TERM; echo up $$; while :; do sleep 0.02; done")

	if err := c.launch(t.Context()); err != nil {
		t.Fatal(err)
	}

	first := c.ProcessID()
	pids := []any{first}

	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	second := c.ProcessID()
	pids = append(pids, second)
	if second == first || !c.Running() {
		t.Errorf("after a restart: process %d, before %d, running %v", second, first, c.Running())
	}

	c.Kill()

	if c.Running() || len(c.hub.ProcessIDs()) != 0 {
		t.Errorf("after a kill: running %v, the hub knows %v", c.Running(), c.hub.ProcessIDs())
	}

	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	pids = append(pids, c.ProcessID())

	if err := c.Stop(); err != nil {
		t.Error(err)
	}

	if err := c.hub.Stop(); err != nil {
		t.Errorf("the hub stops what was stopped before: %v", err)
	}

	// Killed the second time, so two farewells for three starts, in one log.
	want := fmt.Sprintf("up %d\nbye\nup %d\nup %d\nbye", pids...)
	if got := logTail(c.LogPath(), 10); got != want {
		t.Errorf("log %q, want %q", got, want)
	}
}

func TestComponentThatDoesNotStart(t *testing.T) {
	c := newTestComponent(t, "echo the key is missing; exit 1")

	err := c.launch(t.Context())
	if err == nil || !strings.Contains(err.Error(), "script ended by itself (exit status 1)") ||
		!strings.Contains(err.Error(), "the key is missing") {
		t.Errorf("error %v does not say why", err)
	}
}

func TestStartControllerOptions(t *testing.T) {
	for _, options := range []ControllerOptions{{}, {Namespace: "shop", AllNamespaces: true}} {
		if _, err := (&Hub{}).StartController(t.Context(), options); err == nil {
			t.Errorf("options %+v were accepted", options)
		}
	}
}
