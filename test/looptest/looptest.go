// Package looptest has what the tests of the controllers have in common: an API in memory, and the events that were sent.
package looptest

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
)

// NewAPI begins a client of an API in memory, with some objects. It knows our kinds and Kubernetes' core kinds, and has the
// indexes of the controllers' cache. It neither validates nor sets defaults, and a status is written with its object unless
// the caller names the kind with WithStatusSubresource.
func NewAPI(objects ...client.Object) *fake.ClientBuilder {
	scheme := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(corev1.AddToScheme(scheme))

	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	for _, i := range index.All() {
		builder = builder.WithIndex(i.Object, i.Name, i.Values)
	}

	return builder
}

// CountWrites counts the patches of objects and of their status: all that the loop writes.
func CountWrites(writes *int) interceptor.Funcs {
	return interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			*writes++

			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			*writes++

			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
}

// mostEvents is how many events may be sent between two calls of Events.All. More would block the controller.
const mostEvents = 10_000

// Events is the recorder of a controller under test.
type Events struct {
	*events.FakeRecorder

	sent []string
}

// NewEvents returns a recorder to which nothing was sent.
func NewEvents() *Events { return &Events{FakeRecorder: events.NewFakeRecorder(mostEvents)} }

// All returns all events, in order, each as "TYPE REASON NOTE". It is for one goroutine, and so is New.
func (e *Events) All() []string {
	e.New()

	return e.sent
}

// New returns the events since the last call of New or All.
func (e *Events) New() []string {
	var sent []string
	for len(e.Events) > 0 {
		sent = append(sent, <-e.Events)
	}

	e.sent = append(e.sent, sent...)

	return sent
}
