package e2eflux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// settleTime is short, so that tests of destroying changes do not wait long.
const settleTime = 2 * time.Second

var (
	// stack is the management cluster with our programs, which serve Flux's namespace.
	stack *env.Stack
	// flux are the controllers of Flux.
	flux map[env.FluxComponent]*env.FluxProcess
	// workloads lends workload clusters.
	workloads = &env.WorkloadPool{Options: env.Options{Progress: os.Stderr}}
)

func TestMain(m *testing.M) {
	code, err := runWithFlux(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	os.Exit(code)
}

func runWithFlux(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute) // builds what is not built
	defer cancel()

	if stack, err = env.StartStack(ctx, env.StackOptions{
		Hub: env.Options{Progress: os.Stderr},
		Controller: env.ControllerOptions{
			Namespace: env.FluxNamespace, DestroySettleTime: settleTime,
		},
	}); err != nil {
		return 0, err
	}

	flux, err = stack.StartFlux(ctx, env.FluxOptions{
		Components: env.FluxComponents(),
		Args: map[env.FluxComponent][]string{
			env.FluxKustomizeController: {"--requeue-dependency=2s"},
			env.FluxHelmController:      {"--requeue-dependency=2s"},
		},
	})
	if err != nil {
		return 0, errors.Join(err, stack.Stop())
	}

	code = m.Run()

	if code != 0 {
		printLogs()
	}

	return code, errors.Join(workloads.Stop(), stack.Stop())
}

// printLogs shows the end of the logs, and where all of them are kept: Stop removes those of the stack.
func printLogs() {
	paths := []string{stack.OmniAPIServer.LogPath(), stack.Controller.LogPath()}
	for _, controller := range flux {
		paths = append(paths, controller.LogPath())
	}

	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}

		fmt.Fprintf(os.Stderr, "\n== %s\n%s\n", filepath.Base(path), data[max(0, len(data)-6000):])
	}

	if logs, err := stack.SaveLogs("flux"); err == nil {
		fmt.Fprintln(os.Stderr, "logs:", logs)
	}
}
