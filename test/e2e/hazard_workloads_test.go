package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// workloadHazard is an accident with what two management clusters that have the same objects did in a workload cluster.
// Each has a sync and a release of its own, named first, kept and spare, and an export, which are Ready on the first.
type workloadHazard struct {
	name string
	when func(first, copied *releasing)
}

func workloadHazards() []workloadHazard {
	return []workloadHazard{
		{
			name: "sync deleted on a copy of the hub",
			when: func(first, copied *releasing) {
				before := first.target(first.apps, "first")
				copied.otherHubs("oss", "first", first)

				// What it would write is another content now.
				copied.apply(sourceManifest("copy"))
				copied.reconcile("oss", "first")
				copied.run("delete", "oss", "first", "--timeout=60s")
				copied.waitEvent("LeftBehind", "Secret "+first.apps+"/first stays", first.hubID())
				first.same(before, first.target(first.apps, "first"))
			},
		},
		{
			name: "release deleted on a copy of the hub",
			when: func(first, copied *releasing) {
				before := first.record("first", 1)
				copied.otherHubs("ohr", "first", first)

				// What it would release is another chart now.
				copied.apply(copied.releaseOf("first", "2.0.0", "  takeOwnership: true"))
				copied.reconcile("ohr", "first")
				copied.otherHubs("ohr", "first", first)
				copied.run("delete", "ohr", "first", "--timeout=60s")
				copied.waitEvent("LeftBehind", "Helm release "+first.apps+"/first stays", first.hubID())
				first.wantRecords("first", "1 deployed")
				first.same(before, first.record("first", 1))
				first.waitData("first", map[string]string{"chart": "1.0.0", "greeting": "hello"})
				first.reconcile("ohr", "first")
				first.ready("ohr", "first")
			},
		},
		{
			name: "export deleted on a copy of the hub",
			when: func(first, copied *releasing) {
				before := get[corev1.Secret](copied.space, "secret", "access")
				copied.otherHubs("oke", "robot", first)
				copied.run("delete", "oke", "robot", "--timeout=60s")
				copied.waitEvent("SecretLeft", `"access"`, first.hubID())

				after := get[corev1.Secret](copied.space, "secret", "access")
				first.same(&before, &after)
			},
		},
		{
			name: "workload cluster taken over from a hub that is gone",
			when: func(first, copied *releasing) {
				copied.otherHubs("oss", "kept", first)
				copied.otherHubs("ohr", "kept", first)

				secret, record := first.target(first.apps, "kept"), first.record("kept", 1)

				// Suspended on both, "held" keeps the first hub's mark.
				for _, hub := range []*releasing{first, copied} {
					hub.run("patch", "ohr", "held", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
					hub.waitCondition("ohr", "held", v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
				}

				// One act for all that the connection leads to.
				copied.run("annotate", "omniconnection", "omni", v1alpha1.AnnotationPreviousHub+"="+first.hubID())
				copied.ready("oss", "kept")
				copied.ready("ohr", "kept")
				copied.waitEvent("TakenOver", "Secret "+first.apps+"/kept", first.hubID())
				copied.waitEvent("TakenOver", "release "+first.apps+"/kept", first.hubID())
				first.wantRecords("kept", "1 deployed")

				// The source is another one on the copy since the first row.
				first.same(record, first.record("kept", 1), v1alpha1.MarkHub)

				if hub := first.target(first.apps, "kept").Labels[v1alpha1.MarkHub]; hub != copied.hubID() {
					first.t.Errorf("the mark names hub %q, before %q", hub, secret.Labels[v1alpha1.MarkHub])
				}

				// The first was not gone: it takes nothing back, and what it deletes stays.
				for _, kind := range []string{"oss", "ohr"} {
					first.reconcile(kind, "kept")
					first.otherHubs(kind, "kept", copied)
					first.run("delete", kind, "kept", "--timeout=60s")
				}

				copied.reconcile("oss", "kept")
				copied.reconcile("ohr", "kept")
				copied.ready("oss", "kept")
				copied.ready("ohr", "kept")
				first.wantRecords("kept", "1 deployed")

				// Nor is what still bears its mark removed, whatever goes first.
				first.waitShows("the release to know whose the cluster is", "ohr", "held", "{.status.otherHub}", copied.hubID())
				first.run("delete", "ocl", "demo", "--timeout=60s")
				first.run("delete", "ohr", "held", "--timeout=60s")
				first.waitEvent("LeftBehind", "release "+first.apps+"/held", copied.hubID())
				first.wantRecords("held", "1 deployed")

				// It is its own now, so it goes with its object.
				copied.run("delete", "oss/kept", "ohr/kept", "--timeout=60s")
				first.waitTarget("kept", nil)
				first.waitRecords("kept")
			},
		},
	}
}

// TestHazardTwoHubsInWorkloads runs the rows one after another: nothing is destroyed in the workload cluster.
func TestHazardTwoHubsInWorkloads(t *testing.T) {
	t.Parallel()

	first := newReleasing(t)
	first.charts.Add(chartserver.ConfigMapChart("demo", "2.0.0"))
	first.apply(exportManifest("robot", "access", "robot", "deployers"))

	for _, name := range []string{"first", "kept"} {
		first.apply(strings.Replace(first.syncManifest(name, deletes), "name: registry\nspec", "name: "+name+"\nspec", 1), first.releaseOf(name, "1.0.0"))
		first.ready("oss", name)
		first.ready("ohr", name)
	}

	first.apply(first.releaseOf("held", "1.0.0"))
	first.ready("ohr", "held")
	first.ready("oke", "robot")

	away := releasingIn(deliveryIn(newFleetIn(t, "-away")))
	away.apply(strings.Replace(away.syncManifest("removed", deletes), "name: registry\nspec", "name: removed\nspec", 1), away.releaseOf("removed", "1.0.0"))
	away.ready("oss", "removed")
	away.ready("ohr", "removed")

	back := releasingIn(deliveryIn(newFleetIn(t, "-back")))
	back.apply(strings.Replace(back.syncManifest("removed", deletes), "name: registry\nspec", "name: removed\nspec", 1), back.releaseOf("removed", "1.0.0"))
	back.ready("oss", "removed")
	back.ready("ohr", "removed")

	hub := copyHub(t)
	copied := first.on(hub)

	for _, row := range workloadHazards() {
		t.Run(row.name, func(t *testing.T) { row.when(first.part(t), copied.part(t)) })
	}

	t.Run("copy of the hub that cannot reach Omni", func(t *testing.T) { withoutOmni(away.part(t), hub) })

	t.Run("first hub comes back without Omni", func(t *testing.T) { comesBack(back.part(t), hub) })

	first.wantDestroyed()
}

// comesBack has the first hub without a key that works while the copy takes its cluster over and removes a sync and a release there.
// All that the first hub knows is its own status of before, and it may still work in the workload cluster.
func comesBack(first *releasing, hub copiedHub) {
	lost := must(first.omni.AddKey("operator", time.Hour))(first.t)
	copied := first.on(hub)

	first.apply(secretManifest("key", lost, first.omni.Endpoint()))
	first.ready("ocl", "demo")

	if err := first.omni.RevokeKey(lost); err != nil {
		first.t.Fatal(err)
	}

	first.omni.ResetStreams()
	first.waitCondition("ocl", "demo", v1alpha1.ConditionConnectionReady, metav1.ConditionFalse, "")

	copied.run("annotate", "omniconnection", "omni", v1alpha1.AnnotationPreviousHub+"="+first.hubID())
	copied.ready("oss", "removed")
	copied.ready("ohr", "removed")
	copied.run("delete", "oss/removed", "ohr/removed", "--timeout=60s")
	first.waitTarget("removed", nil)
	first.waitRecords("removed")

	for kind, condition := range map[string]string{"oss": v1alpha1.ConditionSynced, "ohr": v1alpha1.ConditionReleased} {
		first.reconcile(kind, "removed")

		message := first.waitCondition(kind, "removed", condition, metav1.ConditionFalse, v1alpha1.ReasonClusterNotInOmni)
		if want := []string{"Another hub may have taken the cluster over", `OmniCluster "demo"`, `OmniConnection "omni"`}; !containsAll(message, want) {
			first.t.Errorf("it does not say all of %q: %s", want, message)
		}

		first.reconcile(kind, "removed")
	}

	first.apply(secretManifest("key", first.key, first.omni.Endpoint()))

	for _, kind := range []string{"oss", "ohr"} {
		first.otherHubs(kind, "removed", copied)
		first.reconcile(kind, "removed")
	}

	if first.target(first.apps, "removed") != nil {
		first.t.Error("the first hub has written the Secret again")
	}

	first.wantRecords("removed")
}

// withoutOmni starts the controller of a copied hub while Omni is away. Since the copy was made, the first hub has removed a sync and a
// release, of which the workload cluster has no mark any more.
func withoutOmni(first *releasing, hub copiedHub) {
	first.run("delete", "oss/removed", "ohr/removed", "--timeout=60s")
	first.waitTarget("removed", nil)
	first.waitRecords("removed")
	first.omni.GoDown()

	copied := first.on(hub)

	for _, kind := range []string{"oss", "ohr"} {
		message := copied.waitCondition(kind, "removed", v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonClusterNotInOmni)
		if want := []string{"last looked at by another hub", first.hubID(), copied.hubID()}; !containsAll(message, want) {
			first.t.Errorf("it does not say all of %q: %s", want, message)
		}

		copied.reconcile(kind, "removed")
	}

	if first.target(first.apps, "removed") != nil {
		first.t.Error("the copy has written the Secret again")
	}

	first.wantRecords("removed")

	// Nor is anything removed: a deletion waits, and leaves what the first hub has.
	copied.run("delete", "oss", "removed", "--wait=false")
	copied.waitCondition("oss", "removed", v1alpha1.ConditionDeletionBlocked, metav1.ConditionTrue, v1alpha1.ReasonClusterNotInOmni)

	if err := first.omni.ComeBack(); err != nil {
		first.t.Fatal(err)
	}

	copied.waitGone("oss", "removed")
	copied.waitEvent("LeftBehind", "Secret "+first.apps+"/removed stays", first.hubID())
	copied.otherHubs("ohr", "removed", first)
	first.wantRecords("removed")
}

// on is the releasing on a copied hub, with a controller there from now on.
func (r *releasing) on(hub copiedHub) *releasing {
	r.t.Helper()

	return &releasing{delivery: &delivery{fleet: hub.of(r.fleet), hub: r.hub, apps: r.apps}, charts: r.charts}
}

// part is the releasing for a part of its test.
func (r *releasing) part(t *testing.T) *releasing {
	t.Helper()

	return &releasing{delivery: &delivery{fleet: r.in(t), hub: r.hub, apps: r.apps}, charts: r.charts}
}

// otherHubs waits until an object is told that what it made is another hub's, and what to do.
func (r *releasing) otherHubs(resource, name string, other *releasing) {
	r.t.Helper()

	message := r.waitCondition(resource, name, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonOwnedByOtherHub)
	if want := []string{other.hubID(), r.hubID(), v1alpha1.AnnotationPreviousHub, `OmniConnection "omni"`}; !containsAll(message, want) {
		r.t.Errorf("it does not say all of %q: %s", want, message)
	}
}

// reconcile has the controller look at an object once more.
func (r *releasing) reconcile(resource, name string) {
	r.t.Helper()

	r.handled(resource, name, time.Now().Format(time.RFC3339Nano))
}

// same checks that nobody wrote a Secret, or nothing but the values of these labels.
func (r *releasing) same(before, after *corev1.Secret, labels ...string) {
	r.t.Helper()

	if before == nil || after == nil {
		r.t.Fatalf("the Secret was there: %v, is there: %v", before != nil, after != nil)
	}

	var ignored []cmp.Option
	if len(labels) > 0 {
		ignored = []cmp.Option{
			cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion", "ManagedFields"),
			cmpopts.IgnoreMapEntries(func(key, _ string) bool { return slices.Contains(labels, key) }),
		}
	}

	if diff := cmp.Diff(before, after, ignored...); diff != "" {
		r.t.Errorf("Secret %s (-before +after):\n%s", before.Name, diff)
	}
}

// The marks of an older controller get the ID of the hub with one write each, which changes nothing else: no data, no
// revision, no new kubeconfig.
func TestOldMarksInWorkloads(t *testing.T) {
	t.Parallel()

	r := newInhabited(t)
	r.apply(exportManifest("robot", "access", "robot", "deployers"))
	r.ready("oke", "robot")

	theirs, here := r.hub.Client().CoreV1().Secrets(r.apps), stack.Client().CoreV1().Secrets(r.name)
	status := r.status("app")

	for _, mark := range []struct {
		secrets              typedcorev1.SecretInterface
		secret, kind, object string
	}{
		{theirs, "pull", "oss", "registry"},
		{theirs, recordName("app", 1), "ohr", "app"},
		{here, "access", "oke", "robot"},
	} {
		before := must(mark.secrets.Get(t.Context(), mark.secret, metav1.GetOptions{}))(t)
		if before.Labels[v1alpha1.MarkHub] != r.hubID() {
			t.Fatalf("labels of %s: %v", mark.secret, before.Labels)
		}

		old := before.DeepCopy()
		delete(old.Labels, v1alpha1.MarkHub)
		old = must(mark.secrets.Update(t.Context(), old, metav1.UpdateOptions{}))(t)
		writes := must(mark.secrets.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + mark.secret, ResourceVersion: old.ResourceVersion}))(t)

		r.reconcile(mark.kind, mark.object)
		r.wait("the mark on "+mark.secret, func() error {
			if hub := must(mark.secrets.Get(t.Context(), mark.secret, metav1.GetOptions{}))(t).Labels[v1alpha1.MarkHub]; hub != r.hubID() {
				return fmt.Errorf("it names hub %q", hub)
			}

			return nil
		})
		r.reconcile(mark.kind, mark.object)
		r.ready(mark.kind, mark.object)

		after := must(mark.secrets.Get(t.Context(), mark.secret, metav1.GetOptions{}))(t)
		r.same(before, after, v1alpha1.MarkHub)

		// The first write made it what it is.
		if write := <-writes.ResultChan(); write.Type != watch.Modified || write.Object.(*corev1.Secret).ResourceVersion != after.ResourceVersion { // of Secrets
			t.Errorf("%s was written more than once, first: %v", mark.secret, write)
		}

		writes.Stop()
	}

	r.wantRecords("app", "1 deployed")

	if diff := cmp.Diff(status.History, r.status("app").History); diff != "" {
		t.Errorf("the release's history (-want +got):\n%s", diff)
	}

	r.waitEvent("MarkCompleted", "Secret "+r.apps+"/pull")
	r.waitEvent("MarkCompleted", "release "+r.apps+"/app")
	r.waitEvent("MarkCompleted", `"access"`)
}
