package loop

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
)

// writes counts what went to the API.
type writes struct {
	Meta, Status int
}

// fixture is one object, the loop under test and what they wrote.
type fixture struct {
	t      *testing.T
	client client.Client
	events *looptest.Events
	writes writes
	kind   Kind[*v1alpha1.OmniConnection, *scope]
	// before is called before each status patch reaches the API.
	before func(client.Client)
}

// scope is what the test phases share.
type scope struct {
	object *v1alpha1.OmniConnection
	ran    []string
}

func newFixture(t *testing.T, object *v1alpha1.OmniConnection, phases ...Phase[*scope]) *fixture {
	t.Helper()

	f := &fixture{t: t, events: looptest.NewEvents()}
	f.client = looptest.NewAPI(object).WithStatusSubresource(object).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			f.writes.Meta++

			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			f.writes.Status++

			if f.before != nil {
				f.before(c)
			}

			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}).Build()

	f.kind = Kind[*v1alpha1.OmniConnection, *scope]{
		New:       func() *v1alpha1.OmniConnection { return &v1alpha1.OmniConnection{} },
		Finalizer: v1alpha1.Finalizer,
		Interval:  func(*v1alpha1.OmniConnection) time.Duration { return testInterval },
		Suspended: func(o *v1alpha1.OmniConnection) bool { return o.Labels["suspended"] == "true" },
		NewScope:  func(o *v1alpha1.OmniConnection) *scope { return &scope{object: o} },
		Phases:    phases,
	}

	return f
}

func (f *fixture) run() (reconcile.Result, error) {
	f.t.Helper()

	r := New(f.kind, Settings{
		Client: f.client, Events: f.events, Jitter: func(interval time.Duration) time.Duration { return interval },
	})

	return r.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "main"}})
}

func (f *fixture) get() *v1alpha1.OmniConnection {
	f.t.Helper()

	object := &v1alpha1.OmniConnection{}
	if err := f.client.Get(f.t.Context(), types.NamespacedName{Namespace: "team", Name: "main"}, object); err != nil {
		f.t.Fatal(err)
	}

	return object
}

// conditions shows conditions as "Type=Status Reason: message".
func conditions(object *v1alpha1.OmniConnection) map[string]string {
	shown := map[string]string{}
	for _, c := range object.Status.Conditions {
		shown[c.Type] = string(c.Status) + " " + c.Reason + ": " + c.Message
	}

	return shown
}

func connection() *v1alpha1.OmniConnection {
	return &v1alpha1.OmniConnection{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "main", Generation: 3},
		Spec:       v1alpha1.OmniConnectionSpec{Endpoint: "https://omni.example.com"},
		Status: v1alpha1.OmniConnectionStatus{ReconcileStatus: v1alpha1.ReconcileStatus{
			ObservedGeneration: -1,
			Conditions: []metav1.Condition{
				{Type: "Ready", Status: "Unknown", Reason: "Pending", LastTransitionTime: metav1.Unix(1, 0)},
				{Type: "Reconciling", Status: "True", Reason: "Pending", LastTransitionTime: metav1.Unix(1, 0)},
			},
		}},
	}
}

func phase(condition string, outcome Outcome, err error) Phase[*scope] {
	return Phase[*scope]{Condition: condition, Run: func(_ context.Context, s *scope) (Outcome, error) {
		s.ran = append(s.ran, condition)

		return outcome, err
	}}
}
