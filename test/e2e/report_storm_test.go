package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// changes counts the changes of an object from now on. The returned function tells how many there were until it is called.
func (f *fleet) changes(resource, name string) func() int {
	f.t.Helper()

	var (
		mu    sync.Mutex
		count int
	)

	events, version := f.watch(resource, name)

	go func() {
		for event := range events {
			if object, ok := event.Object.(*unstructured.Unstructured); ok {
				mu.Lock()
				count, version = count+1, object.GetResourceVersion()
				mu.Unlock()
			}
		}
	}()

	return func() int {
		f.wait("the watch of "+resource+"/"+name, func() error {
			object, err := tryGet[anyKind](f.space, resource, name)

			mu.Lock()
			defer mu.Unlock()

			if err == nil && object.ResourceVersion != version {
				err = fmt.Errorf("it is at version %s of %s", version, object.ResourceVersion)
			}

			return err
		})

		mu.Lock()
		defer mu.Unlock()

		return count
	}
}

// A storm: about 500 changes of one cluster's statuses per second. It costs a bounded number of
// writes, the status follows meanwhile, and the last change is shown.
func TestStatusStorm(t *testing.T) {
	// A storm lasts until there were so many rounds, and so many values were seen.
	const rounds, values = 300, 5

	f := newFleet(t)
	f.apply(machineManifest(f.machines[0], "c"))
	f.cluster("c")
	f.omni.Pause()
	f.settled(func() string {
		return f.run("get", "ocl,ow,ocp,om", "-o", "jsonpath={.items[*].metadata.resourceVersion}")
	})

	written := []func() int{f.changes("ocl", "c"), f.changes("ow", "c-w"), f.changes("ocp", "c-cp"), f.changes("om", f.machines[0])}
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)

	var round atomic.Uint32

	began, stormed := time.Now(), make(chan error, 1)

	go func() { stormed <- storm(ctx, f.omni.Unchecked(), f.machines[0], &round) }()

	healthy := func() int32 {
		return get[v1alpha1.OmniCluster](f.space, "ocl", "c").Status.Omni.Machines.Healthy
	}
	seen := map[int32]bool{}

	f.wait("the status to follow the storm", func() error {
		seen[healthy()] = true

		if last := round.Load(); last < rounds || len(seen) < values {
			return fmt.Errorf("%d values seen in %d rounds: %v", len(seen), last, seen)
		}

		return nil
	})
	stop()

	if err := <-stormed; err != nil {
		t.Fatal(err)
	}

	last, ended := round.Load(), time.Now()
	length := ended.Sub(began)

	f.wait("the last change", func() error {
		if got := healthy(); got != int32(last) {
			return fmt.Errorf("healthy is %d, the last was %d", got, last)
		}

		return nil
	})

	took := time.Since(ended)

	writes := 0
	for _, count := range written {
		writes += count()
	}

	t.Logf("%d rounds of three changes in %s: %d writes to the API, %d values seen, the last after %s", last, length.Round(10*time.Millisecond), writes, len(seen), took.Round(10*time.Millisecond))

	// The cluster and its three documents, at most two and a half times a second each, also while a busy controller works
	// off what came before the end.
	const backlog = 5 * time.Second
	if limit := 4 * (int((length+min(took, backlog))/(400*time.Millisecond)) + 4); writes > limit {
		t.Errorf("%d writes, wanted at most %d", writes, limit)
	}

	if took > atOnce {
		t.Errorf("the last change was shown after %s", took)
	}

	f.omni.Resume()
}

// storm changes the cluster's, a set's and a machine's status until the context ends. The number of the
// round that was done last is what it wrote last.
func storm(ctx context.Context, st state.State, machine string, round *atomic.Uint32) error {
	for ctx.Err() == nil {
		count := round.Load() + 1

		// Each step is whole, whenever the context ends.
		err := errors.Join(
			tryChange(context.WithoutCancel(ctx), st, omni.NewMachineSetStatus("c-c-w"), func(found *omni.MachineSetStatus) {
				found.TypedSpec().Value.Machines.Connected = count
			}),
			tryChange(context.WithoutCancel(ctx), st, omni.NewClusterMachineStatus(machine), func(found *omni.ClusterMachineStatus) {
				found.TypedSpec().Value.Stage = specs.ClusterMachineStatusSpec_Stage(count%4 + 1)
			}),
			tryChange(context.WithoutCancel(ctx), st, omni.NewClusterStatus("c"), func(found *omni.ClusterStatus) {
				found.TypedSpec().Value.Machines.Healthy = count
			}),
		)
		if err != nil {
			return err
		}

		round.Store(count)
		time.Sleep(5 * time.Millisecond) // three changes: about 500 a second
	}

	return nil
}
