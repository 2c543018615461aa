package app

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// silentServer accepts requests and answers none before the end of the test; asked gets a value at each of them.
func silentServer(t *testing.T) (url string, asked <-chan string) {
	t.Helper()

	requests, end := make(chan string, 100), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests <- r.URL.Path

		<-end
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })

	return server.URL, requests
}

// manifest is a file with an OmniCluster.
func manifest(t *testing.T) string {
	t.Helper()

	file := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: omni.texashpc.com/v1alpha1\nkind: OmniCluster\nmetadata: {name: edge-01}\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	return file
}

// TestPlanOfFilesIsInterrupted has a server that does not answer.
func TestPlanOfFilesIsInterrupted(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	server, asked := silentServer(t)
	ctx, interrupt := context.WithCancel(t.Context())

	go func() {
		<-asked
		interrupt()
	}()

	// What is interrupted goes on by itself until its server has ended: it finds no folder to write into behind the test's back.
	nowhere := filepath.Join(os.DevNull, "none")

	output, _, status, err := newSession(t).executeUntil(ctx, "plan", "-f", manifest(t), "--server", server, "--cache-dir", nowhere)
	if !errors.Is(err, context.Canceled) || status != 2 || output != "" {
		t.Errorf("%v, status %d\n%s", err, status, output)
	}
}

// TestPlanOfFilesHasADeadline has a file on a server that does not answer.
func TestPlanOfFilesHasADeadline(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	server, _ := silentServer(t)

	_, _, status, err := newSession(t).execute("plan", "-f", server+"/cluster.yaml", "--server", server, "--cache-dir", t.TempDir(), "--request-timeout", "100ms")
	if err == nil || !strings.Contains(err.Error(), "deadline exceeded") || status != 2 {
		t.Errorf("%v, status %d", err, status)
	}
}

// An interrupted question is not answered with yes.
func TestQuestionsAreInterrupted(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	for _, args := range [][]string{
		{"approve", "edge-01"}, {"override", "edge-01", "--reason", "the outage of tonight"}, {"promote", "production", "prod"},
		{"migrate", "run", "--server", "https://hub.example.com", "--backup", "unused"},
		{"migrate", "undo", "--server", "https://hub.example.com", "--backup", "unused"},
	} {
		s := newSession(t)
		typed, keyboard := io.Pipe()
		s.stdin = typed

		ctx, interrupt := context.WithTimeout(t.Context(), 50*time.Millisecond)

		_, shown, _, err := s.executeUntil(ctx, args...)
		if !errors.Is(err, errNotConfirmed) || len(s.writes()) > 0 || !strings.Contains(shown, "[y/N]: ") {
			t.Errorf("%v: %v, writes %v\n%s", args, err, s.writes(), shown)
		}

		interrupt()
		_ = keyboard.Close()
	}
}

// TestSecondSignal runs itself as a process that does not heed its context.
func TestSecondSignal(t *testing.T) {
	if os.Getenv("HEEDLESS") != "" {
		ctx, stop := untilSignal()
		defer stop()

		_, _ = os.Stdout.WriteString("ready\n")

		<-ctx.Done()

		_, _ = os.Stdout.WriteString("interrupted\n")

		select {}
	}

	for _, sent := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSecondSignal$")
		command.Env = append(os.Environ(), "HEEDLESS=yes")

		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}

		if err = command.Start(); err != nil {
			t.Fatal(err)
		}

		lines := bufio.NewScanner(output)
		for _, want := range []string{"ready", "interrupted"} {
			if !lines.Scan() || lines.Text() != want {
				t.Fatalf("%q, want %q", lines.Text(), want)
			}

			if err = command.Process.Signal(sent); err != nil {
				t.Fatal(err)
			}
		}

		// The second one may come before the first is noted to the end, as of a user who is quick.
		stop := time.AfterFunc(commandTimeout, func() { _ = command.Process.Kill() })
		again := time.NewTicker(50 * time.Millisecond)
		ended := make(chan error, 1)

		go func() { ended <- command.Wait() }()

		for running := true; running; {
			select {
			case <-again.C:
				_ = command.Process.Signal(sent)
			case <-ended:
				running = false
			}
		}

		again.Stop()
		stop.Stop()

		if status, is := command.ProcessState.Sys().(syscall.WaitStatus); !is || status.Signal() != sent {
			t.Errorf("%s: %s", sent, command.ProcessState)
		}
	}
}
