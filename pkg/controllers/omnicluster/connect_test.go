package omnicluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session/opening"
)

func TestNotConnected(t *testing.T) {
	condition := func(status metav1.ConditionStatus, message string) []metav1.Condition {
		return []metav1.Condition{{Type: "Reachable", Status: status, Message: "other"}, {Type: "Ready", Status: status, Reason: "KeyExpired", Message: message}}
	}

	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"its own word":        {condition(metav1.ConditionFalse, "the key has expired"), `OmniConnection "omni" is not connected to Omni: KeyExpired: the key has expired`},
		"no message":          {condition(metav1.ConditionFalse, ""), `OmniConnection "omni" is not connected to Omni; see its conditions`},
		"not looked at":       {condition(metav1.ConditionUnknown, "waits"), `OmniConnection "omni" is not connected to Omni; see its conditions`},
		"says that all is ok": {condition(metav1.ConditionTrue, "fine"), `OmniConnection "omni" is not connected to Omni; see its conditions`},
		"nothing yet":         {nil, `OmniConnection "omni" is not connected to Omni; see its conditions`},
	} {
		t.Run(name, func(t *testing.T) {
			connection := &v1alpha1.OmniConnection{ObjectMeta: metav1.ObjectMeta{Name: "omni"}}
			connection.Status.Conditions = test.conditions

			if got := notConnected(connection); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// A connection that is led elsewhere before Omni told the ID of the cluster makes
// no second one: the first would be lost.
func TestEndpointChangedBeforeTheIDIsKnown(t *testing.T) {
	cluster := newCluster()
	cluster.Status.Endpoint = "https://elsewhere.example.com"
	f := newFixture(t, cluster)
	f.create(newControlPlane("cp", f.machines[0]))

	cluster = f.until("Stalled", metav1.ConditionTrue, "EndpointChanged")
	says(t, message(cluster, "Ready"), "https://elsewhere.example.com", f.omni.Endpoint(), "change it back", "spec.deletePolicy.orphan")
	f.quiet()

	if got := f.get().Status.Endpoint; got != "https://elsewhere.example.com" || f.remoteWrites() != 0 {
		t.Errorf("endpoint %s, %d writes", got, f.remoteWrites())
	}

	// The way out that the message names.
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.Orphan = true })
	f.delete(newCluster())
	f.untilGone()
	f.create(newCluster())
	f.until("Ready", metav1.ConditionTrue, "Running")
}

// A connection that is led to another Omni says nothing about the cluster: it is neither gone nor made
// again there, whatever an annotation allows, and what is known of it is known still when the
// connection leads back.
func TestEndpointChanged(t *testing.T) {
	cluster := newCluster()
	cluster.Annotations = map[string]string{v1alpha1.AnnotationRecreate: "the-id"}
	cluster.Status.Endpoint, cluster.Status.OmniClusterID, cluster.Status.Adopting = "https://elsewhere.example.com", "the-id", true
	f := newFixture(t, cluster)
	f.create(newControlPlane("cp", f.machines[0]))

	cluster = f.until("Stalled", metav1.ConditionTrue, "EndpointChanged")
	says(t, message(cluster, "Ready"), "was last seen at https://elsewhere.example.com", f.omni.Endpoint(), "change it back", "spec.deletePolicy.orphan", v1alpha1.AnnotationRecreate)
	f.quiet()

	if got := f.get().Status; got.Endpoint != "https://elsewhere.example.com" || got.OmniClusterID != "the-id" || !got.Adopting || f.remoteWrites() != 0 {
		t.Errorf("%+v, %d writes", got, f.remoteWrites())
	}
}

// The same Omni under a name that is written in another way, or under another name: the cluster is
// found there, and the endpoint is recorded. Only another name is worth a word, as a copy of that Omni
// looks the same, and one is enough.
func TestEndpointOfTheSameOmni(t *testing.T) {
	f := newFixture(t, newCluster())
	f.create(newControlPlane("cp", f.machines[0]))
	f.until("Ready", metav1.ConditionTrue, "Running")

	for _, before := range []string{f.omni.Endpoint() + "/", "https://former.example.com"} {
		cluster := f.get()
		cluster.Status.Endpoint = before

		if err := f.client.Status().Update(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}

		writes := f.remoteWrites()
		f.until("Ready", metav1.ConditionTrue, "Running")

		if got := f.get().Status.Endpoint; got != f.omni.Endpoint() || f.remoteWrites() != writes {
			t.Errorf("from %s: %s, %d writes", before, got, f.remoteWrites()-writes)
		}
	}

	f.quiet()

	moves := slices.DeleteFunc(slices.Clone(f.events.All()), func(event string) bool { return !strings.Contains(event, "EndpointMoved") })
	want := `Warning EndpointMoved cluster "demo" is looked for at ` + f.omni.Endpoint() + " from now on, before at https://former.example.com"

	if len(moves) != 1 || !strings.HasPrefix(moves[0], want) || !strings.Contains(moves[0], "a copy of that Omni") {
		t.Errorf("%q", moves)
	}
}

// The first endpoint, and one that leads to an Omni without the cluster, are no moves.
func TestEndpointThatIsNoMove(t *testing.T) {
	f := newFixture(t, newCluster())
	f.create(newControlPlane("cp", f.machines[0]))
	f.until("Ready", metav1.ConditionTrue, "Running")

	cluster := f.get()
	cluster.Status.Endpoint, cluster.Status.OmniClusterID = "https://elsewhere.example.com", "another"

	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	f.until("Stalled", metav1.ConditionTrue, "EndpointChanged")

	if f.hasEvent("EndpointMoved") {
		t.Errorf("%q", f.events.All())
	}
}

func TestConnectionThatIsNotThere(t *testing.T) {
	cluster := newCluster()
	cluster.Spec.ConnectionRef.Name = "none"
	f := newFixture(t, cluster)

	says(t, message(f.until("ConnectionReady", metav1.ConditionFalse, "ConnectionNotFound"), "Ready"), `"none"`)
	f.quiet()
	f.delete(newCluster())
	f.untilGone()
}

// The session goes away: a status says so, but not in the first moments of the
// process.
func TestSessionThatIsNotOpen(t *testing.T) {
	f := running(t)
	f.pool.Forget("uid-connection")
	f.restart()

	writes := f.writes
	keeps := func() {
		t.Helper()

		if result := f.run(); result.RequeueAfter <= 0 || result.RequeueAfter > opening.Pause || f.writes != writes {
			t.Errorf("%v, %d writes", result, f.writes-writes)
		}
	}

	keeps()

	// The connection is still shown as Ready: its own controller says when it is not.
	showReady(f, metav1.ConditionTrue)
	f.advance(session.ReadyGrace - time.Second)
	keeps()

	showReady(f, metav1.ConditionFalse)
	f.until("ConnectionReady", metav1.ConditionFalse, "ConnectionNotReady")
	f.quiet()
	f.connect()
	f.until("Ready", metav1.ConditionTrue, "Running")
}

// showReady writes the condition Ready of the connection, as its controller does.
func showReady(f *fixture, status metav1.ConditionStatus) {
	f.t.Helper()

	connection := &v1alpha1.OmniConnection{}
	if err := f.client.Get(f.t.Context(), client.ObjectKey{Namespace: testNamespace, Name: "omni"}, connection); err != nil {
		f.t.Fatal(err)
	}

	apimeta.SetStatusCondition(&connection.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: "Any", ObservedGeneration: connection.Generation,
	})

	if err := f.client.Update(f.t.Context(), connection); err != nil {
		f.t.Fatal(err)
	}
}
