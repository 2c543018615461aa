package omnicluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session/opening"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// runningForLong is a cluster that runs, over a connection that is shown as Ready, in a process that has led for long.
func runningForLong(t *testing.T) *fixture {
	t.Helper()

	f := running(t)
	showReady(f, metav1.ConditionTrue)
	f.reconciler.started = f.clock().Add(-time.Hour)

	return f
}

// keepsStatus checks that runs write nothing and tell nothing, and look again soon.
func (f *fixture) keepsStatus(when string) {
	f.t.Helper()

	cluster, events, remote := f.get(), f.events.All(), f.remoteWrites()

	for range 2 {
		if result := f.run(); result.RequeueAfter <= 0 || result.RequeueAfter > opening.Pause {
			f.t.Errorf("%s: looked at again after %s", when, result.RequeueAfter)
		}
	}

	if diff := cmp.Diff(cluster, f.get()); diff != "" || f.remoteWrites() != remote {
		f.t.Errorf("%s: %d writes to Omni, and to the API:\n%s", when, f.remoteWrites()-remote, diff)
	}

	if diff := cmp.Diff(events, f.events.All()); diff != "" {
		f.t.Errorf("%s: events:\n%s", when, diff)
	}
}

// dial opens a session with a key, as the controller of OmniConnection does, and returns once the old one is closed. The
// result is of the attempt.
func (f *fixture) dial(text, endpoint string) <-chan error {
	f.t.Helper()

	key, err := session.ParseServiceAccountKey([]byte(text))
	if err != nil {
		f.t.Fatal(err)
	}

	ended := make(chan error, 1)

	go func() {
		lease, err := f.pool.Acquire(f.t.Context(), session.Identity{UID: "uid-connection"}, session.Config{Endpoint: endpoint, Key: key, CABundle: f.omni.CAPEM()})
		if err == nil {
			lease.Release()
		}

		ended <- err
	}()

	f.eventually("the end of the old session", func() string {
		if lease, open := f.pool.Get("uid-connection"); open {
			lease.Release()

			return "it is open"
		}

		return ""
	})

	return ended
}

func (f *fixture) anotherKey() string {
	f.t.Helper()

	key, err := f.omni.AddKey("operator", time.Hour)
	if err != nil {
		f.t.Fatal(err)
	}

	return key
}

// replaceSession replaces the session by one with another key or endpoint, and checks that no moment of that is shown.
func (f *fixture) replaceSession(key, endpoint string) {
	f.t.Helper()

	answer := f.omni.Inject(omnisim.Fault{Method: "Get", Hang: true})
	fill := f.omni.Inject(omnisim.Fault{Method: "Watch", Hang: true})
	ended := f.dial(key, endpoint)
	f.keepsStatus("while it is dialled")
	answer()

	if err := <-ended; err != nil {
		f.t.Fatal(err)
	}

	lease, open := f.pool.Get("uid-connection")
	if !open {
		f.t.Fatal("no session")
	}
	defer lease.Release()

	f.keepsStatus("while its copy is being filled")
	fill()
	f.eventually("the new copy", func() string { return lease.Health().Message })
}

// A new key replaces the session of a connection, and nothing is wrong.
func TestNewKeyIsNotShown(t *testing.T) {
	t.Parallel()

	f := runningForLong(t)
	writes := f.writes
	f.replaceSession(f.anotherKey(), f.omni.Endpoint())
	f.quiet()

	if f.writes != writes || !isReady(f.get()) {
		t.Errorf("%d writes: %q", f.writes-writes, shown(f.get()))
	}
}

// Nor is anything wrong between the change of an endpoint, or of anything else of a connection, and the look of its own
// controller.
func TestNewEndpointIsNotShown(t *testing.T) {
	t.Parallel()

	f := runningForLong(t)
	before := len(f.events.All())
	changeConnection(f, func(o *v1alpha1.OmniConnection) { o.Spec.Endpoint += "/" })
	f.keepsStatus("before the connection is looked at")
	f.replaceSession(f.key, f.omni.Endpoint()+"/")
	showReady(f, metav1.ConditionTrue)
	f.quiet()

	if got := f.get(); !isReady(got) || got.Status.Endpoint != f.omni.Endpoint()+"/" || len(f.events.All()) != before {
		t.Errorf("%s, %q, events %q", got.Status.Endpoint, shown(got), f.events.All()[before:])
	}
}

func changeConnection(f *fixture, edit func(*v1alpha1.OmniConnection)) {
	f.t.Helper()

	connection := &v1alpha1.OmniConnection{}
	if err := f.client.Get(f.t.Context(), client.ObjectKey{Namespace: testNamespace, Name: "omni"}, connection); err != nil {
		f.t.Fatal(err)
	}

	edit(connection)
	connection.Generation++

	if err := f.client.Update(f.t.Context(), connection); err != nil {
		f.t.Fatal(err)
	}
}

// A key that Omni refuses is shown at once, also while it is tried again.
func TestRefusedKeyIsShownAtOnce(t *testing.T) {
	t.Parallel()

	f := runningForLong(t)
	key := f.anotherKey()

	if err := f.omni.RevokeKey(key); err != nil {
		t.Fatal(err)
	}

	answer := f.omni.Inject(omnisim.Fault{Method: "Get", Hang: true})
	ended := f.dial(key, f.omni.Endpoint())
	f.keepsStatus("while it is dialled")
	answer()

	if err := <-ended; err == nil {
		t.Fatal("the key is good")
	}

	showReady(f, metav1.ConditionFalse)

	asked := make(chan struct{}, 1)

	hang := f.omni.Inject(omnisim.Fault{Method: "Get", Hang: true, OnHit: func() { asked <- struct{}{} }})
	defer hang()

	f.dial(key, f.omni.Endpoint())
	<-asked
	f.run()
	says(t, message(f.get(), "Ready"), `OmniConnection "omni" is not connected to Omni`)
}

// A copy that is not filled is shown after a while, and at once if the connection says so.
func TestCopyThatIsNotFilledIsShown(t *testing.T) {
	t.Parallel()

	for name, later := range map[string]func(*fixture){
		"a while":                   func(f *fixture) { f.advance(session.ReadyGrace + time.Minute) },
		"the connection is unready": func(f *fixture) { showReady(f, metav1.ConditionFalse) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := runningForLong(t)

			fill := f.omni.Inject(omnisim.Fault{Method: "Watch", Hang: true})
			defer fill()

			answer := f.omni.Inject(omnisim.Fault{Method: "Get", Hang: true})
			ended := f.dial(f.anotherKey(), f.omni.Endpoint())
			answer()

			if err := <-ended; err != nil {
				t.Fatal(err)
			}

			f.keepsStatus("while its copy is being filled")
			later(f)
			f.run()
			says(t, message(f.get(), "Ready"), "reading")
		})
	}
}
