package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

const (
	// namespace of the examples.
	namespace = "omni-cluster-operator-system"
	// stepWait bounds one wait for something to become true.
	stepWait = time.Minute
	// keyLifetime of the demonstration's service account.
	keyLifetime = 30 * 24 * time.Hour
)

// What the examples name, and Omni has to have.
var exampleMachines = [...]string{"1c3f5d1e-0d59-4d0c-9f0a-6a5c0f6f1a01", "1c3f5d1e-0d59-4d0c-9f0a-6a5c0f6f1b01"}

const (
	exampleClass = "general"
	classWorkers = "cluster-01-workers"
)

// stage is the running stack, and the narrator.
type stage struct {
	stack *env.Stack
	omni  *omnisim.Server
	key   string
	dir   string // of the example manifests
}

func startStage(ctx context.Context) (*stage, error) {
	root, err := env.RepositoryRoot()
	if err != nil {
		return nil, err
	}

	d := &stage{dir: filepath.Join(root, "artifacts", "examples")}
	d.say("Building what is not built yet, and starting etcd, kube-apiserver, omni-apiserver, kube-controller-manager and omni-controller ...")

	if err := d.startOmni(); err != nil {
		return nil, err
	}

	d.stack, err = env.StartStack(ctx, env.StackOptions{
		Hub:        env.Options{Progress: os.Stdout},
		Controller: env.ControllerOptions{Namespace: namespace, DestroySettleTime: 2 * time.Second},
	})
	if err != nil {
		return nil, errors.Join(err, d.close())
	}

	return d, nil
}

// startOmni starts the simulator with the machines and the machine class that the examples name.
func (d *stage) startOmni() (err error) {
	if d.omni, err = omnisim.Start(omnisim.Options{}); err != nil {
		return err
	}

	for _, id := range exampleMachines {
		if _, err := d.omni.AddMachine(omnisim.Machine{ID: id}); err != nil {
			return err
		}
	}

	for range 5 {
		if _, err := d.omni.AddMachine(omnisim.Machine{Labels: map[string]string{"pool": "general"}}); err != nil {
			return err
		}
	}

	if err := d.omni.AddMachineClass(exampleClass, "pool = general"); err != nil {
		return err
	}

	d.key, err = d.omni.CreateServiceAccount("omni-cluster-operator", omnisim.RoleOperator, keyLifetime)

	return err
}

func (d *stage) close() error {
	var err error
	if d.stack != nil {
		err = d.stack.Stop()
	}

	if d.omni != nil {
		d.omni.Close()
	}

	return err
}

// holdOpen prints how to use the stack and waits for the interrupt.
func (d *stage) holdOpen(ctx context.Context) error {
	if err := d.connect(ctx); err != nil {
		return err
	}

	d.say("\n  export KUBECONFIG=%s", d.stack.KubeconfigPath)
	d.say("  kubectl get omni -n %s", namespace)
	d.say("\nkubectl is at %s if you have none. A simulated Omni serves %s.", d.stack.KubectlPath(), d.omni.Endpoint())
	d.say("Logs are in %s. Ctrl-C stops everything.", filepath.Join(d.stack.Dir, "logs"))

	<-ctx.Done()

	d.say("\nStopping ...")

	return nil
}

func (d *stage) say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// kubectl shows the command and what it prints, as in a terminal.
func (d *stage) kubectl(ctx context.Context, args ...string) (string, error) {
	d.say("$ kubectl %s", strings.Join(args, " "))

	stdout, stderr, err := d.stack.Kubectl(ctx, append([]string{"-n", namespace}, args...)...)
	if out := strings.TrimRight(stdout+stderr, "\n"); out != "" {
		d.say("%s", indent(out))
	}

	return stdout, err
}

// quiet is kubectl without showing anything.
func (d *stage) quiet(ctx context.Context, stdin string, args ...string) (string, error) {
	stdout, _, err := d.stack.KubectlInput(ctx, strings.NewReader(stdin), append([]string{"-n", namespace}, args...)...)

	return stdout, err
}

// until polls and says how long it took.
func (d *stage) until(ctx context.Context, what string, check func(context.Context) error) error {
	start := time.Now()
	if err := env.Eventually(ctx, stepWait, what, check); err != nil {
		return err
	}

	d.say("  -> %s, after %s", what, time.Since(start).Round(10*time.Millisecond))

	return nil
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}
