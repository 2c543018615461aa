package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"omni.texashpc.com/omni-cluster-operator/cmd/kubectl-omni/app"
	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// settleTime is short, so that tests of destroying changes do not wait long, and long enough to change
// one's mind in it on a busy machine.
const settleTime = 5 * time.Second

// namespaceTimeout is kubectl's, for a namespace to go. The namespace controller looks again and again, some eight seconds
// apart, and on a busy machine needs a few looks more; a namespace that hangs never goes.
const namespaceTimeout = "--timeout=240s"

var (
	// stack is the management cluster with both of our programs, shared by all tests.
	stack *env.Stack
	// workloads lends workload clusters.
	workloads = &env.WorkloadPool{Options: env.Options{Progress: os.Stderr}, Max: 2}
	// auditPath is the audit log of the shared API server, by the default policy.
	auditPath string
	// testCA signs the certificate of no server; it is only well-formed.
	testCA string
)

// pluginProcess in the environment makes this program kubectl omni, for what has to be a process of its own.
const pluginProcess = "E2E_PLUGIN=yes"

func TestMain(m *testing.M) {
	if slices.Contains(os.Environ(), pluginProcess) {
		os.Exit(app.Main(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, os.Args[1:]))
	}

	code, err := runWithStack(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	os.Exit(code)
}

func runWithStack(m *testing.M) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()

	sim, err := omnisim.Start(omnisim.Options{})
	if err != nil {
		return 0, err
	}

	testCA = string(sim.CAPEM())
	sim.Close()

	dir, err := os.MkdirTemp("", "audit-")
	if err != nil {
		return 0, fmt.Errorf("make a directory for the audit log: %w", err)
	}
	defer os.RemoveAll(dir)

	auditPath = filepath.Join(dir, "audit.log")

	if stack, err = env.StartStack(ctx, env.StackOptions{
		Hub: env.Options{Progress: os.Stderr},
		// Every poll is a line: without a limit of the size the log never begins anew while a test reads it.
		OmniAPIServer: env.OmniAPIServerOptions{Args: []string{"--audit-log-path=" + auditPath, "--audit-log-maxsize=0"}},
		Controller:    env.ControllerOptions{DestroySettleTime: settleTime, Args: []string{"--export-namespaces=" + exportsNamespace, "--rollout-ready-time=2s"}},
	}); err != nil {
		return 0, err
	}

	// Tests that run in parallel wait most of the time.
	if err := flag.Set("test.parallel", "6"); err != nil {
		return 0, errors.Join(err, stack.Stop())
	}

	code := m.Run()

	if code != 0 {
		printLogs()
	}

	return code, errors.Join(workloads.Stop(), stack.Stop())
}

// printLogs shows the end of our programs' logs, and keeps all that Stop removes.
func printLogs() {
	for _, path := range []string{stack.OmniAPIServer.LogPath(), stack.Controller.LogPath()} {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}

		fmt.Fprintf(os.Stderr, "\n== the end of %s\n%s\n", filepath.Base(path), data[max(0, len(data)-8000):])
	}

	if to, err := stack.SaveLogs("shared"); err != nil {
		fmt.Fprintf(os.Stderr, "the logs cannot be kept: %v\n", err)
	} else {
		fmt.Fprintf(os.Stderr, "logs: %s\n", to)
	}
}
