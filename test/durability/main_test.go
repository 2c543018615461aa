package durability

import (
	"context"
	"flag"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned"
	typed "omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned/typed/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

var (
	kills     = flag.Int("kills", 5, "how often omni-apiserver is killed")
	apiServer = flag.String("apiserver", "", "the omni-apiserver to test; empty: it is built from this repository")
	seed      = flag.Uint64("seed", 0, "what all chance comes from; 0: the clock")
)

const (
	// requestTimeout bounds a request of a test. It is long, because machines may be busy.
	requestTimeout = 30 * time.Second
	// eventually bounds what has to come sometime.
	eventually = 90 * time.Second
)

// newHub starts a hub that ends with the test.
func newHub(t *testing.T) *env.Hub {
	t.Helper()

	hub, err := env.StartHub(t.Context(), env.Options{Progress: t.Output(), WithoutControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if t.Failed() {
			if logs, err := hub.SaveLogs(t.Name()); err == nil {
				t.Logf("logs: %s", logs)
			}
		}

		if err := hub.Stop(); err != nil {
			t.Error(err)
		}
	})

	return hub
}

// clientset makes a client with a connection of its own.
func clientset(t *testing.T, config *rest.Config) typed.OmniV1alpha1Interface {
	t.Helper()

	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}

	return client.OmniV1alpha1()
}

// newWorkers is a document; its size is what tests change.
func newWorkers(name string, size int32) *v1alpha1.OmniWorkers {
	return &v1alpha1.OmniWorkers{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.OmniWorkersSpec{
			ClusterRef: v1alpha1.LocalObjectReference{Name: "c"},
			MachineSetMachines: v1alpha1.MachineSetMachines{
				MachineClass: &v1alpha1.MachineClass{Name: "m", Size: new(intstr.FromInt32(size))},
			},
		},
	}
}

// pause waits, unless the context ends first.
func pause(ctx context.Context, long time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(long):
	}
}
