package omnisecretsync

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// mover is one object that is run as the loop does, without an API server.
type mover struct {
	*testing.T

	store   *secretStore
	cluster *clusteraccess.Cluster
	access  *clusteraccess.Access // the real one; nil: the cluster is open to everybody
	r       *reconciler
	told    *events.FakeRecorder
	sync    *v1alpha1.OmniSecretSync
	hubs    hubs.Hubs
}

func newMover(t *testing.T) *mover {
	t.Helper()

	m := &mover{T: t, store: &secretStore{secrets: map[string]*corev1.Secret{}}, told: events.NewFakeRecorder(100)}
	m.cluster = clusterAt(t, m.store.ServeHTTP)
	m.r = newReconciler(nil, nil, m.told, Options{HubID: thisHub, Access: &clusteraccess.Access{}})
	m.hubs = connected()
	m.sync = scopeOf(t, nil).sync
	m.sync.Status.Target = nil
	m.sync.DeletionTimestamp = &metav1.Time{Time: time.Now()}

	return m
}

// opened is the way into the cluster.
func (m *mover) opened() *clusteraccess.Opened {
	m.Helper()

	for m.access != nil {
		opened, outcome, err := m.access.Open(m.Context(), clusteraccess.RequesterOf(m.sync, nil))
		if err != nil || opened == nil && !outcome.Postpones() {
			m.Fatal(outcome, err)
		}

		if opened != nil {
			return opened
		}

		time.Sleep(time.Millisecond)
	}

	return &clusteraccess.Opened{Cluster: m.cluster, Hubs: m.hubs, Names: `OmniConnection "omni"`}
}

// to changes the target.
func (m *mover) to(namespace, name string) {
	m.sync.Spec.TargetSecretRef = v1alpha1.NamespacedSecretReference{Namespace: namespace, Name: name}
}

// run is one run; its status is lost if the controller dies in it.
func (m *mover) run() loop.Outcome {
	m.Helper()

	s := &scope{sync: m.sync.DeepCopy(), want: wanted(m.T), opened: m.opened()}
	defer s.opened.Done()

	outcome, err := m.r.write(m.Context(), s)
	if err != nil {
		m.Fatal(err)
	}

	m.r.report(m.Context(), s)

	if !m.store.dead {
		m.sync.Status = s.sync.Status
	}

	return outcome
}

// settle runs until there is nothing to do.
func (m *mover) settle() {
	m.Helper()

	for range 20 {
		if m.run().Continues() {
			return
		}
	}

	m.Fatalf("never done; status %+v", m.sync.Status)
}

// remove is the deletion.
func (m *mover) remove() {
	m.Helper()

	if outcome, err := m.r.cleanUp(m.Context(), &scope{sync: m.sync, opened: m.opened()}, m.cluster); err != nil || !outcome.Continues() {
		m.Errorf("the deletion: %+v, %v", outcome, err)
	}
}

// The target changes from a to b, the controller dies at any request, before or after the cluster carried it out,
// and the target changes to c, or back, or the object is deleted: nothing is forgotten anywhere.
func TestNoSecretIsForgotten(t *testing.T) {
	for dieAt := range 7 {
		for _, late := range []bool{false, true} {
			for _, next := range []string{"c", "a", "b", ""} {
				t.Run(fmt.Sprintf("dies at %d, late %v, then %q", dieAt, late, next), func(t *testing.T) {
					m := newMover(t)
					m.to("apps", "a")
					m.settle()

					m.store.requests, m.store.dieAt, m.store.dieLate = 0, dieAt, late
					m.to("apps", "b")

					for range 4 { // enough for the change, or to die
						m.run()
					}

					m.store.dead, m.store.dieAt = false, 0

					want := ""
					if next != "" {
						m.to("apps", next)
						m.settle()

						want = "apps/" + next
					} else {
						m.remove()
					}

					if got := m.store.names(); got != want {
						t.Errorf("the cluster has %q, want %q", got, want)
					}

					if next != "" && (len(m.sync.Status.PendingTargets) != 0 || m.sync.Status.Target.Name != next || m.sync.Status.Target.Hash == "") {
						t.Errorf("status: %+v", m.sync.Status)
					}
				})
			}
		}
	}
}

// The new target is written before the former one is removed, and noted before it is written.
func TestNewBeforeOld(t *testing.T) {
	m := newMover(t)

	var seen []string

	note := func() {
		pending := fmt.Sprint(pendingLocations(m.sync))
		seen = append(seen, fmt.Sprintf("%s has %s, %s", writtenLocation(m.sync), m.store.names(), pending))
	}

	m.to("apps", "a")

	for range 2 {
		m.run()
		note()
	}

	m.to("apps", "b")

	for range 3 {
		m.run()
		note()
	}

	want := []string{
		"apps/a has , []", "apps/a has apps/a, []", "apps/a has apps/a, [apps/b]", "apps/b has apps/b, []", "apps/b has apps/b, []",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A target in a namespace without the rights does not hold back the next one, nor a deletion: an event names it.
func TestTargetWithoutRights(t *testing.T) {
	m := newMover(t)
	m.store.forbidden = "secret"

	m.to("secret", "x")
	m.run()

	// The rights may come right after.
	if outcome := m.run(); outcome.Reason() != v1alpha1.ReasonForbidden || outcome.Stalls() || outcome.After() != time.Minute {
		t.Fatalf("got %+v", outcome)
	}

	m.to("apps", "a")
	m.settle()
	m.says("secret/x may be left")

	// What was written for certain holds it back.
	m.store.forbidden = "apps"
	m.to("other", "b")
	m.run()

	if outcome := m.run(); outcome.Reason() != v1alpha1.ReasonForbidden || !strings.Contains(outcome.Message(), "remove the former target apps/a") {
		t.Errorf("got %+v", outcome)
	}

	m.store.forbidden = ""
	m.to("secret", "y")
	m.store.forbidden = "secret"
	m.run()
	m.remove()
	m.says("secret/y may be left")

	if got := m.store.names(); got != "" {
		t.Errorf("the cluster has %q", got)
	}
}

// The namespace of the former target was deleted, and with it the RoleBinding that let its Secrets be read: RBAC answers before
// anything is looked for.
func TestTheNamespaceOfTheFormerTargetIsGone(t *testing.T) {
	for name, end := range map[string]func(*mover){
		"another target": func(m *mover) { m.to("other", "b"); m.settle() },
		"a deletion":     (*mover).remove,
	} {
		t.Run(name, func(t *testing.T) {
			m := newMover(t)
			m.to("apps", "a")
			m.settle()
			m.store.gone = "apps"
			delete(m.store.secrets, "apps/a")

			if end(m); len(m.sync.Status.PendingTargets) != 0 {
				t.Errorf("pending: %v", m.sync.Status.PendingTargets)
			}

			if told := m.all(); strings.Contains(told, "LeftBehind") {
				t.Errorf("events:\n%s", told)
			}
		})
	}
}

// A former target that was written for certain and may not be read is not forgotten, and holds neither the new one nor the other
// former ones back.
func TestAFormerTargetThatMayNotBeRead(t *testing.T) {
	m := newMover(t)
	m.to("apps", "a")
	m.settle()
	m.store.forbidden = "apps"

	for _, name := range []string{"b", "c"} {
		m.to("other", name)
		m.run()

		outcome := m.run()
		if outcome.Reason() != v1alpha1.ReasonForbidden || outcome.Stalls() || outcome.After() != time.Minute ||
			!strings.Contains(outcome.Message(), "remove the former target apps/a") || !strings.Contains(outcome.Message(), "spec.deletionPolicy to Orphan") {
			t.Errorf("%s: %s", outcome.Reason(), outcome.Message())
		}

		status := m.sync.Status
		if writtenLocation(m.sync) != (location{"other", name}) || status.Target.Hash == "" || fmt.Sprint(pendingLocations(m.sync)) != "[apps/a]" {
			t.Errorf("target %v, pending %v", status.Target, status.PendingTargets)
		}
	}

	if got := m.store.names(); got != "apps/a other/c" {
		t.Errorf("the cluster has %q", got)
	}

	outcome, err := m.r.cleanUp(t.Context(), &scope{sync: m.sync, opened: m.opened()}, m.cluster)
	if err != nil || !outcome.Blocks() || m.store.names() != "apps/a" {
		t.Errorf("a deletion: %s, %v; the cluster has %q", outcome.Message(), err, m.store.names())
	}

	m.store.forbidden = ""

	if m.settle(); m.store.names() != "other/c" || len(m.sync.Status.PendingTargets) != 0 {
		t.Errorf("the cluster has %q, pending %v", m.store.names(), m.sync.Status.PendingTargets)
	}
}

// With Orphan a former copy stays, also one that was adopted, and the status forgets it.
func TestAFormerCopyThatIsToStay(t *testing.T) {
	for name, forbidden := range map[string]string{"readable": "", "not readable": "apps"} {
		t.Run(name, func(t *testing.T) {
			m := newMover(t)
			m.to("apps", "a")
			m.settle()
			m.all()
			m.sync.Spec.DeletionPolicy, m.store.forbidden = v1alpha1.DeletionOrphan, forbidden
			m.to("other", "b")

			for range 3 {
				m.settle()
			}

			if got := m.store.names(); got != "apps/a other/b" || len(m.sync.Status.PendingTargets) != 0 {
				t.Errorf("the cluster has %q, pending %v", got, m.sync.Status.PendingTargets)
			}

			if told := m.all(); strings.Count(told, "LeftBehind") != 1 ||
				!strings.Contains(told, "Warning LeftBehind Secret apps/a stays in the workload cluster") || !strings.Contains(told, "spec.deletionPolicy is Orphan") {
				t.Errorf("events:\n%s", told)
			}
		})
	}
}

// What was at a former target is not said to be ours because the policy is Orphan: somebody might remove a stranger's Secret.
func TestAFormerTargetOfSomebodyElse(t *testing.T) {
	m := newMover(t)
	m.sync.Spec.DeletionPolicy = v1alpha1.DeletionOrphan
	m.store.secrets["apps/theirs"] = &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "theirs", UID: types.UID("x")},
	}
	m.to("apps", "theirs")
	m.run()

	if outcome := m.run(); outcome.Reason() != v1alpha1.ReasonForeignTarget {
		t.Fatalf("got %+v", outcome)
	}

	m.to("apps", "mine")
	m.settle()

	if told := m.all(); strings.Contains(told, "LeftBehind") || m.store.names() != "apps/mine apps/theirs" {
		t.Errorf("the cluster has %q, events:\n%s", m.store.names(), told)
	}
}

// says looks for words among the events so far.
func (m *mover) says(words string) {
	m.Helper()

	for len(m.told.Events) > 0 {
		if strings.Contains(<-m.told.Events, words) {
			return
		}
	}

	m.Errorf("no event says %q", words)
}

// The target is changed again and again while nothing can be written: the list does not grow without end.
func TestPendingTargetsAreBounded(t *testing.T) {
	m := newMover(t)
	m.to("apps", "a")
	m.settle()

	m.store.forbidden = "secret"

	for i := range 3 * mostPending {
		m.to("secret", fmt.Sprint(i))

		for range 3 {
			m.run()
		}

		if len(m.sync.Status.PendingTargets) > mostPending {
			t.Fatalf("%d pending targets", len(m.sync.Status.PendingTargets))
		}
	}

	m.to("apps", "b")
	m.settle()

	if got := m.store.names(); got != "apps/b" || len(m.sync.Status.PendingTargets) != 0 {
		t.Errorf("the cluster has %q; status %+v", got, m.sync.Status)
	}
}

// A pending place at which somebody else has a Secret is left alone.
func TestPendingLocationOfSomebodyElse(t *testing.T) {
	m := newMover(t)
	m.to("apps", "a")
	m.settle()

	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "theirs", UID: types.UID("x")}}
	theirs.APIVersion, theirs.Kind = "v1", "Secret"
	m.store.secrets["apps/theirs"] = theirs
	m.to("apps", "theirs")
	m.run()

	if outcome := m.run(); outcome.Reason() != v1alpha1.ReasonForeignTarget {
		t.Fatalf("got %+v", outcome)
	}

	m.to("apps", "b")
	m.settle()
	m.remove()

	if got := m.store.names(); got != "apps/theirs" {
		t.Errorf("the cluster has %q", got)
	}

	if told := m.all(); strings.Contains(told, "LeftBehind") {
		t.Errorf("events:\n%s", told)
	}
}

// A former copy without this object's mark stays, and is told of once: the status forgets it.
func TestFormerCopyWithoutTheMark(t *testing.T) {
	for name, labels := range map[string]map[string]string{"labels removed": nil, "taken over": {labelOwnerUID: "another"}} {
		t.Run(name, func(t *testing.T) {
			m := newMover(t)
			m.to("apps", "a")
			m.settle()
			m.store.secrets["apps/a"].Labels = labels
			m.all()

			m.to("apps", "b")

			for range 3 {
				m.settle()
			}

			if got := m.store.names(); got != "apps/a apps/b" {
				t.Errorf("the cluster has %q", got)
			}

			if told := m.all(); strings.Count(told, "LeftBehind") != 1 ||
				!strings.Contains(told, "Warning LeftBehind Secret apps/a stays in the workload cluster") || !strings.Contains(told, "does not carry this object's mark") {
				t.Errorf("events:\n%s", told)
			}
		})
	}
}

// A replacement that the cluster refuses does not cost the copy that is there.
func TestARefusedReplacementKeepsTheCopy(t *testing.T) {
	for name, refused := range map[string]bool{"refused": true, "taken": false} {
		t.Run(name, func(t *testing.T) {
			m := newMover(t)
			m.to("apps", "a")
			m.settle()

			before := m.store.secrets["apps/a"]
			before.Type = "other" // so it has to be made again
			m.store.refuses = refused
			m.sync.Generation++

			outcome := m.run()
			after := m.store.secrets["apps/a"]

			if refused && (outcome.Reason() != v1alpha1.ReasonRefused || after != before) {
				t.Errorf("%s: %s; the Secret: %v", outcome.Reason(), outcome.Message(), after)
			}

			if !refused && (!outcome.Continues() || after == nil || after.Type == "other") {
				t.Errorf("%s: %s; the Secret: %v", outcome.Reason(), outcome.Message(), after)
			}
		})
	}
}
