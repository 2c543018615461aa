package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
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

// demo is the running stack, and the narrator.
type demo struct {
	stack    *env.Stack
	omni     *omnisim.Server
	workload *workload
	charts   *chartserver.Repository
	key      string
	dir      string // of the example manifests
}

func startDemo(ctx context.Context) (*demo, error) {
	dir, err := examples()
	if err != nil {
		return nil, err
	}

	d := &demo{dir: dir, charts: startCharts()}
	d.say("Building what is not built yet, and starting etcd, kube-apiserver, omni-apiserver, kube-controller-manager and omni-controller ...")

	if err := d.startOmni(); err != nil {
		return nil, errors.Join(err, d.close())
	}

	d.stack, err = env.StartStack(ctx, env.StackOptions{
		Hub: env.Options{Progress: os.Stdout},
		Controller: env.ControllerOptions{
			Namespace: namespace, DestroySettleTime: 2 * time.Second, Args: []string{"--rollout-ready-time=2s"},
		},
	})
	if err != nil {
		return nil, errors.Join(err, d.close())
	}

	d.workload = startWorkload(ctx, d.omni)

	return d, nil
}

// startOmni starts the simulator with the machines and the machine class that the examples name.
func (d *demo) startOmni() (err error) {
	if d.omni, err = omnisim.Start(omnisim.Options{}); err != nil {
		return err
	}

	for _, id := range slices.Concat(exampleMachines[:], rolloutMachines[:]) {
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

// close stops everything, both control planes at the same time: each takes a second.
func (d *demo) close() error {
	var (
		stopping sync.WaitGroup
		errs     [2]error
	)

	if d.stack != nil {
		stopping.Go(func() { errs[0] = d.stack.Stop() })
	}

	if d.workload != nil {
		stopping.Go(func() { errs[1] = d.workload.stop() })
	}

	stopping.Wait()

	if d.omni != nil {
		d.omni.Close()
	}

	d.charts.Close()

	return errors.Join(errs[:]...)
}
