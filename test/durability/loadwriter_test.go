package durability

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// heldBack is how long a replica keeps requests waiting before it asks their clients to leave (pkg/apiserver/goaway.go).
// A write that fails because it crossed that has at most one request before it, of the same client, that waited; the one
// before came earlier. So it fails this long after its last but one began, or later.
const heldBack = 300 * time.Millisecond

// loadWriter is one client that writes, one request after the other.
type loadWriter struct {
	*load

	client rest.Interface
	prefix string       // of the names of its objects
	began  [2]time.Time // its last but one request, and its last
}

// write makes an object, changes it in each way that clients have, and deletes every second one.
func (w *loadWriter) write(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprintf("%s-%d", w.prefix, i)
		object := &v1alpha1.OmniWorkers{}
		patch := func(kind types.PatchType) *rest.Request { return namespaced(w.client.Patch(kind)).Name(name) }

		_ = w.change(ctx, "create", namespaced(w.client.Post()).Body(newWorkers(name, 1)), name, object)
		err := w.change(ctx, "patch", patch(types.MergePatchType).Body([]byte(`{"spec":{"machineClass":{"size":2}}}`)), name, object)

		// Who does not know the state of before cannot send an update.
		if err == nil {
			object.Spec.MachineClass.Size = new(intstr.FromInt32(3))
			_ = w.change(ctx, "update", namespaced(w.client.Put()).Name(name).Body(object), name, object)
		}

		_ = w.change(ctx, "apply", patch(types.ApplyPatchType).Param("fieldManager", "load").Param("force", "true").Body(applied(name, 4)), name, object)

		if i%2 == 1 {
			_ = w.change(ctx, "delete", namespaced(w.client.Delete()).Name(name).Body(&metav1.DeleteOptions{}), name, nil)
		}
	}
}

// applied is the manifest of newWorkers.
func applied(name string, size int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"OmniWorkers","metadata":{"name":%q},"spec":{"clusterRef":{"name":"c"},"machineClass":{"name":"m","size":%d}}}`,
		v1alpha1.SchemeGroupVersion.String(), name, size)
}

// change sends a write, keeps what was acknowledged, and pauses.
func (w *loadWriter) change(ctx context.Context, verb string, request *rest.Request, name string, object *v1alpha1.OmniWorkers) error {
	begin := time.Now()

	err := w.do(ctx, verb, request, object)
	if err != nil {
		w.judge(name, begin)
	}

	w.began = [2]time.Time{w.began[1], begin}
	w.note(name, object, err)
	pause(ctx, loadPause)

	return err
}

// crossing is more than it takes to fail by crossing the request to leave, also on a busy machine: a write that hung
// before it failed was cut off.
const crossing = 10 * time.Second

// judge counts a failure that cannot come from crossing the request to leave. What fails because of an earlier failure,
// as the change of an object that was not made, is not counted twice.
func (w *loadWriter) judge(name string, begin time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if !w.doubtful[name] && (time.Since(w.began[0]) < heldBack || time.Since(begin) > crossing) {
		w.hasty++
	}
}

// onlyCrossed says, after end, that nothing failed but writes that may have crossed the request to leave.
func (l *load) onlyCrossed() bool {
	for verb := range l.failures {
		switch verb {
		case "create", "patch", "update", "apply", "delete":
		default:
			return false
		}
	}

	return l.hasty == 0
}
