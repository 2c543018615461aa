package omniconnection

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cosi-project/runtime/api/v1alpha1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// An Omni that sends too much is left, and the condition says which flag raises the bound. Nothing is sent to it for a
// while, and nothing is written either.
func TestTooMuchData(t *testing.T) {
	f := newFixture(t)
	f.pool = session.NewPool(t.Context(), session.PoolOptions{Observer: f.calls.Observe, Limits: bounds.Limits{Resources: 100}})
	t.Cleanup(f.pool.Close)
	f.start(EndpointPolicy{})
	f.secret("key", f.key)
	f.allow(f.omni.Endpoint())

	remove := f.omni.Flood("Clusters.omni.sidero.dev", func(number int) *v1alpha1.WatchResponse {
		return &v1alpha1.WatchResponse{Event: []*v1alpha1.Event{{EventType: v1alpha1.EventType_CREATED, Resource: &v1alpha1.Resource{
			Metadata: &v1alpha1.Metadata{
				Namespace: "default", Type: "Clusters.omni.sidero.dev", Id: fmt.Sprintf("c%d", number), Version: "1", Phase: "running",
			},
			Spec: &v1alpha1.Spec{},
		}}}}
	})
	defer remove()

	closed := func() bool {
		lease, open := f.pool.Get("uid-main")
		if open {
			lease.Release()
		}

		return !open && slices.ContainsFunc(f.get().Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == "Reachable" && c.Reason == "TooMuchData"
		})
	}

	await.Until(t, "the session is closed", func() bool { f.run(); return closed() })

	f.expect("Reachable", metav1.ConditionFalse, "TooMuchData", f.omni.Endpoint(), "--omni-max-resources", "15m0s")

	if !apimeta.IsStatusConditionTrue(f.get().Status.Conditions, "Stalled") {
		t.Error("it is not stalled")
	}

	// The session was left at once; a watch of it may still be on its way to the server.
	f.omni.GoDown()
	f.omni.ForgetRequests()

	if err := f.omni.ComeBack(); err != nil {
		t.Fatal(err)
	}

	f.run()

	if requests := f.omni.Requests(); len(requests) > 0 {
		t.Errorf("requests were sent: %v", requests)
	}

	if _, open := f.pool.Get("uid-main"); open {
		t.Error("a session is open")
	}
}
