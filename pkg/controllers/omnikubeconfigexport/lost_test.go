package omnikubeconfigexport

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// The process is told to stop when Omni has signed: that kubeconfig is stored all the same, because no process after it knows it.
func TestWhatOmniSignedIsStoredAtAStop(t *testing.T) {
	f := newFixture(t)
	ctx, stop := context.WithCancel(t.Context())
	bounded := false

	f.client = interceptor.NewClient(f.client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			stop()

			if _, bounded = ctx.Deadline(); ctx.Err() != nil {
				return ctx.Err()
			}

			return c.Create(ctx, o, opts...)
		},
	})
	f.restart()

	_, err := f.loop.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: f.export}})
	if f.secret("target") == nil || !bounded {
		t.Fatalf("nothing is stored, or without a bound: %v", err)
	}

	f.restart()
	f.ready()

	if f.asked() != 1 {
		t.Errorf("Omni was asked %d times", f.asked())
	}
}

// An answer of Omni is lost, or the process stops while it waits for one: nobody has the kubeconfig that Omni may have signed, so all
// that can be done is to say so.
func TestALostAnswerIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		fault omnisim.Fault
		stops bool
		told  int
	}{
		"the connection breaks": {fault: omnisim.Fault{AnswerLost: true, Code: codes.Unavailable, Message: "error reading from server: EOF"}, told: 1},
		"Omni fails":            {fault: omnisim.Fault{Code: codes.Internal}, told: 1},
		"the process stops":     {fault: omnisim.Fault{Hang: true}, stops: true, told: 1},
		"Omni refuses":          {fault: omnisim.Fault{Code: codes.PermissionDenied}},
		"nothing listens": {fault: omnisim.Fault{
			Code: codes.Unavailable, Message: `connection error: desc = "transport: Error while dialing: dial tcp: connect: connection refused"`,
		}},
		"a proxy has no route": {fault: omnisim.Fault{Code: codes.Unimplemented}},
		"there are too many":   {fault: omnisim.Fault{Code: codes.ResourceExhausted}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)

			ctx, stop := context.WithCancel(t.Context())
			defer stop()

			test.fault.Method, test.fault.Times = "Kubeconfig", 1
			if test.stops {
				test.fault.OnHit = stop
			}

			f.omni.Inject(test.fault)

			_, err := f.loop.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: f.export}})
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}

			lifetime := f.get().Spec.TTL.OrDefault(0).String()
			if told := f.told("KubeconfigUnanswered", `user "robot"`, "valid for "+lifetime); told != test.told {
				t.Errorf("told %d times: %q", told, f.events.All())
			}
		})
	}
}
