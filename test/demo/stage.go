package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// clusterExamples are the manifests of one cluster.
var clusterExamples = [...]string{"cluster.yaml", "controlplane.yaml", "workers-static.yaml", "workers-class.yaml", "machine.yaml"}

// stage is the running stack, and the narrator.
type stage struct {
	stack *env.Stack
	omni  *omnisim.Server
	key   string
	dir   string // of the example manifests
}

func startStage(ctx context.Context) (*stage, error) {
	dir, err := examples()
	if err != nil {
		return nil, err
	}

	d := &stage{dir: dir}
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

// examples is the directory of the example manifests as a user would type it: from the working
// directory, if there is such a path.
func examples() (string, error) {
	root, err := env.RepositoryRoot()
	if err != nil {
		return "", err
	}

	dir := filepath.Join(root, "artifacts", "examples")

	working, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find examples: %w", err)
	}

	if relative, err := filepath.Rel(working, dir); err == nil {
		return relative, nil
	}

	return dir, nil
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

	d.say("\nIn another terminal, in this directory:\n\n  export KUBECONFIG=%s", d.stack.KubeconfigPath)
	d.say("  kubectl apply%s", clusterFiles(d.dir))
	d.say("  kubectl get omni -n %s", namespace)
	d.say("\nkubectl is at %s if you have none.", d.stack.KubectlPath())
	d.say("A simulated Omni serves %s. Logs are in %s.", d.omni.Endpoint(), filepath.Join(d.stack.Dir, "logs"))
	d.say("Ctrl-C stops everything and removes it.")

	<-ctx.Done()

	d.say("\nStopping ...")

	return nil
}
