package omniconnection

import (
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// readyForLong is a connection that is Ready, in a process that has led for an hour.
func readyForLong(t *testing.T) *fixture {
	t.Helper()

	f := newFixture(t)
	f.now = time.Now().Add(-time.Hour)
	f.run() // there is no key yet
	f.now = time.Now()
	f.secret("key", f.key)
	f.runUntilReady(metav1.ConditionTrue)

	return f
}

func (f *fixture) anotherKey() string {
	f.t.Helper()

	key, err := f.omni.AddKey("operator", 30*24*time.Hour)
	if err != nil {
		f.t.Fatal(err)
	}

	f.now = time.Now() // no key is younger

	return key
}

// A new key, CA or endpoint replaces the session, whose copy of a large Omni takes a while. Nothing is wrong meanwhile, and
// what is written of the connection turns its clusters.
func TestReplacedSessionIsNotShown(t *testing.T) {
	t.Parallel()

	for name, replace := range map[string]func(*fixture){
		"key": func(f *fixture) { f.secret("key", f.anotherKey()) },
		"CA": func(f *fixture) {
			f.edit(func(o *v1alpha1.OmniConnection) { o.Spec.CABundle = append(o.Spec.CABundle, '\n') })
		},
		"endpoint": func(f *fixture) { f.edit(func(o *v1alpha1.OmniConnection) { o.Spec.Endpoint += "/" }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := readyForLong(t)

			fill := f.omni.Inject(omnisim.Fault{Method: "Watch", Hang: true})
			defer fill()

			replace(f)

			writes := f.writes
			if result := f.run(); f.writes != writes || result.RequeueAfter <= 0 || result.RequeueAfter > session.ContentsGrace+time.Minute {
				t.Errorf("%d writes, then %+v: %+v", f.writes-writes, result, f.get().Status.Conditions)
			}

			f.now = f.now.Add(session.ContentsGrace + time.Minute) // the pool has the real clock
			f.expect("Ready", metav1.ConditionFalse, "MirrorNotSynced", "reading")
			fill()
			f.runUntilReady(metav1.ConditionTrue)
		})
	}
}

// A key that Omni refuses is shown at once.
func TestRefusedKeyIsShownAtOnce(t *testing.T) {
	t.Parallel()

	f := readyForLong(t)
	key := f.anotherKey()

	if err := f.omni.RevokeKey(key); err != nil {
		t.Fatal(err)
	}

	f.secret("key", key)
	f.expect("Reachable", metav1.ConditionFalse, "Unauthenticated")

	if conditions := f.get().Status.Conditions; !apimeta.IsStatusConditionTrue(conditions, "Stalled") {
		t.Errorf("%+v", conditions)
	}
}
