package omnikubeconfigexport

import (
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session/opening"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// editConnection edits the OmniConnection, and shows it as Ready or not.
func (f *fixture) editConnection(ready metav1.ConditionStatus, edit func(*v1alpha1.OmniConnection)) *v1alpha1.OmniConnection {
	f.t.Helper()

	connection := &v1alpha1.OmniConnection{}
	f.must(f.client.Get(f.t.Context(), types.NamespacedName{Namespace: namespace, Name: "main"}, connection))
	apimeta.SetStatusCondition(&connection.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: ready, Reason: "Any", ObservedGeneration: connection.Generation})
	edit(connection)
	connection.Generation++
	f.must(f.client.Update(f.t.Context(), connection))

	return connection
}

// dial opens the session of a connection anew, and returns once Omni is asked and does not answer. The result is of the
// attempt, which ends after answer was called.
func (f *fixture) dial(connection *v1alpha1.OmniConnection) (answer func(), ended <-chan error) {
	f.t.Helper()

	key, err := session.ParseServiceAccountKey([]byte(f.key))
	f.must(err)

	asked, result := make(chan struct{}, 10), make(chan error, 1)
	answer = f.omni.Inject(omnisim.Fault{Method: "Get", Hang: true, OnHit: func() { asked <- struct{}{} }})

	go func() {
		lease, err := f.pool.Acquire(f.t.Context(), session.Identity{UID: "uid-main"},
			session.Config{Endpoint: connection.Spec.Endpoint, Key: key, CABundle: connection.Spec.CABundle})
		if err == nil {
			lease.Release()
		}

		result <- err
	}()

	<-asked

	return answer, result
}

// keepsStatus checks that a run writes nothing, and looks again soon.
func (f *fixture) keepsStatus(when string) {
	f.t.Helper()

	writes := len(f.writes)
	if result := f.run(); len(f.writes) != writes || result.RequeueAfter <= 0 || result.RequeueAfter > opening.Pause {
		f.t.Errorf("%s: wrote %q, then %+v: %+v", when, f.writes[writes:], result, f.get().Status.Conditions)
	}
}

// Another CA or endpoint of a connection asks for new kubeconfigs of all its exports, and replaces the session that issues
// them. Nothing is wrong meanwhile.
func TestReplacedSessionIsNotShown(t *testing.T) {
	t.Parallel()

	for name, edit := range map[string]func(*v1alpha1.OmniConnection){
		"CA":       func(o *v1alpha1.OmniConnection) { o.Spec.CABundle = append(o.Spec.CABundle, '\n') },
		"endpoint": func(o *v1alpha1.OmniConnection) { o.Spec.Endpoint += "/" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := newFixture(t)
			f.ready()
			f.reconciler.started = f.now.Add(-time.Hour)
			connection := f.editConnection(metav1.ConditionTrue, edit)

			if name == "endpoint" {
				f.keepsStatus("before the connection is looked at")
			}

			answer, ended := f.dial(connection)
			f.keepsStatus("while it is dialled")
			answer()
			f.must(<-ended)
			f.ready()

			if f.asked() != 2 {
				t.Errorf("Omni was asked %d times", f.asked())
			}
		})
	}
}

// A connection that its own controller shows as not Ready is no moment that passes.
func TestConnectionThatIsNotReadyIsShown(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	f.ready()
	f.reconciler.started = f.now.Add(-time.Hour)
	connection := f.editConnection(metav1.ConditionFalse, func(o *v1alpha1.OmniConnection) { o.Spec.Endpoint += "/" })

	answer, _ := f.dial(connection)
	defer answer()

	f.expect(metav1.ConditionFalse, v1alpha1.ReasonConnectionNotReady, `OmniConnection "main" is not connected`)
}
