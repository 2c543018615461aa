package omnicluster

import (
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// wants makes the OmniCluster want manifests, each a Namespace of its name.
func (b *bench) wants(mode v1alpha1.ManifestMode, names ...string) {
	b.t.Helper()
	b.edit(func(o *v1alpha1.OmniCluster) {
		o.Spec.Kubernetes.Manifests = nil

		for _, name := range names {
			object := v1alpha1.FreeForm{Raw: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + name + `"}}`)}
			o.Spec.Kubernetes.Manifests = append(o.Spec.Kubernetes.Manifests,
				v1alpha1.Manifest{Name: name, Mode: mode, Inline: []v1alpha1.FreeForm{object}})
		}
	})
}

// withManifests is running with manifest groups of mode full.
func withManifests(t *testing.T, names ...string) *bench {
	t.Helper()

	b := running(t)
	b.wants(v1alpha1.ManifestFull, names...)
	b.wantRecorded(idsOfManifests(names...)...)
	b.quiet()

	return b
}

func idsOfManifests(names ...string) []string {
	var ids []string
	for i, name := range names {
		ids = append(ids, "20"+string(rune('0'+i))+"-cluster-demo-"+name)
	}

	return ids
}

// wantRecorded runs until status.appliedManifests is as wanted.
func (b *bench) wantRecorded(ids ...string) {
	b.t.Helper()
	b.eventually("the record of manifests", func() string {
		b.run()

		return cmp.Diff(ids, b.get().Status.AppliedManifests)
	})
}

// manifestsByHand makes a group past our operator.
func (b *bench) manifestsByHand(id string, mode specs.KubernetesManifestGroupSpec_Mode) {
	b.t.Helper()

	group := inCluster(omnires.NewKubernetesManifestGroup(id))
	group.TypedSpec().Value.Mode = mode

	if err := group.TypedSpec().Value.SetUncompressedData([]byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: databases}\n")); err != nil {
		b.t.Fatal(err)
	}

	b.byHand(group)
}

func (b *bench) hasManifests(id string) bool {
	_, err := safe.StateGetByID[*omnires.KubernetesManifestGroup](b.t.Context(), b.omni.State(), id)

	return err == nil
}

// waits lets a long time pass, in which nothing may be destroyed.
func (b *bench) waits() {
	b.t.Helper()

	for range 5 {
		b.advance(settleTime)
		b.run()
	}

	b.quiet()
	b.wantTornDown()
}

// The objects that somebody keeps in a cluster through Omni stay there until somebody approves.
func TestManifestsMadeByHandWaitForApproval(t *testing.T) {
	for _, policy := range []v1alpha1.ChangePolicy{v1alpha1.ChangePolicyApply, v1alpha1.ChangePolicyConfirmDestructive} {
		t.Run(string(policy), func(t *testing.T) {
			b := withManifests(t, "ours")
			b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = policy })
			b.manifestsByHand("by-hand", specs.KubernetesManifestGroupSpec_FULL)

			cluster := b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
			says(t, message(cluster, "Ready"), `KubernetesManifestGroup "by-hand"`, "not made by this object")

			if got := cluster.Status.Plan.Changes[0]; !got.Destructive || !got.NeedsApproval {
				t.Errorf("%+v", got)
			}

			b.waits()

			// What is asked for goes on beside it.
			b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"harmless": "yes"} })
			b.eventually("the harmless change", func() string {
				b.run()

				return map[bool]string{false: "not there"}[b.view().Labels["harmless"] == "yes"]
			})

			b.approvePlan()
			b.until("Ready", metav1.ConditionTrue, "Running")
			b.wantTornDown("KubernetesManifestGroups by-hand")
			b.wantRecorded(idsOfManifests("ours")...)
		})
	}
}

// What Omni applied once stays in the cluster, so nobody is asked.
func TestOneTimeManifestsGoAtOnce(t *testing.T) {
	b := running(t)
	b.wants(v1alpha1.ManifestOneTime, "ours")
	b.until("Synced", metav1.ConditionTrue, "")
	b.manifestsByHand("by-hand", specs.KubernetesManifestGroupSpec_ONE_TIME)
	b.wants(v1alpha1.ManifestOneTime)
	b.eventually("both to go", func() string {
		b.run()

		return strings.Join(b.leftOf("by-hand", "200-cluster-demo-ours"), " ")
	})

	if got := b.get().Status.AppliedManifests; got != nil {
		t.Errorf("recorded: %v", got)
	}
}

func (b *bench) leftOf(ids ...string) []string {
	var left []string

	for _, id := range ids {
		if b.hasManifests(id) {
			left = append(left, id)
		}
	}

	return left
}

// A document's own manifest goes after the settle time, and stays if it is back by then.
func TestManifestsTakenOffSettle(t *testing.T) {
	b := withManifests(t, "a", "b")
	b.wants(v1alpha1.ManifestFull, "a")
	says(t, message(b.until("Synced", metav1.ConditionFalse, "WaitingToSettle"), "Synced"), `KubernetesManifestGroup "201-cluster-demo-b"`)
	b.advance(settleTime - time.Second)
	b.run()
	b.wants(v1alpha1.ManifestFull, "a", "b")
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.waits()

	b.wants(v1alpha1.ManifestFull, "a")
	b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	b.wantTornDown()
	b.advance(settleTime)
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.wantTornDown("KubernetesManifestGroups 201-cluster-demo-b")
	b.wantRecorded(idsOfManifests("a")...)
	b.quiet()
}

func TestManifestsTakenOffWithConfirmation(t *testing.T) {
	b := withManifests(t, "a")
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive })
	b.wants(v1alpha1.ManifestFull)
	b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	b.waits()
	b.approvePlan()
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.wantTornDown("KubernetesManifestGroups 200-cluster-demo-a")
}

// Another place in the list is another ID in Omni, but no object goes for it.
func TestManifestsThatOnlyMoveDoNotWait(t *testing.T) {
	b := withManifests(t, "a")
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive })
	b.wants(v1alpha1.ManifestFull, "new", "a")
	b.until("Synced", metav1.ConditionTrue, "")
	b.wantRecorded(idsOfManifests("new", "a")...)
	b.wantTornDown("KubernetesManifestGroups 200-cluster-demo-a")
	b.quiet()
}

// Omni removes the objects of a group that leaves mode full, so that settles, and
// is a question if it was not this object that made the group full.
func TestManifestsThatLeaveModeFull(t *testing.T) {
	b := withManifests(t, "a")
	b.wants(v1alpha1.ManifestOneTime, "a")
	b.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	b.wantRecorded(idsOfManifests("a")...)
	b.advance(settleTime)
	b.until("Synced", metav1.ConditionTrue, "")
	b.wantRecorded()

	if _, err := safe.StateUpdateWithConflicts(t.Context(), b.omni.State(), omnires.NewKubernetesManifestGroup("200-cluster-demo-a").Metadata(),
		func(group *omnires.KubernetesManifestGroup) error {
			group.TypedSpec().Value.Mode = specs.KubernetesManifestGroupSpec_FULL

			return nil
		}); err != nil {
		t.Fatal(err)
	}

	says(t, message(b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval"), "Ready"), "not made full by this object")
	b.waits()
	b.approvePlan()
	b.until("Ready", metav1.ConditionTrue, "Running")
}

// Our etcd was restored, or the status is of a release without the record.
func TestManifestsThatNoRecordNames(t *testing.T) {
	b := withManifests(t, "a", "later")
	cluster := b.get()
	cluster.Status.AppliedManifests = nil

	if err := b.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	// The documents of before do not know the one, and want the other.
	b.wants(v1alpha1.ManifestFull, "a")
	b.restart()
	says(t, message(b.until("Stalled", metav1.ConditionTrue, "AwaitingApproval"), "Ready"), `"201-cluster-demo-later"`)
	b.waits()
	b.wantRecorded(idsOfManifests("a")...)
	b.wants(v1alpha1.ManifestFull, "a", "later")
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.wantRecorded(idsOfManifests("a", "later")...)
	b.quiet()
}

// A spec that only a cache has does not make the record grow.
func TestStaleSpecRecordsNothing(t *testing.T) {
	b := running(t)
	old := b.get()
	b.wants(v1alpha1.ManifestFull, "a")

	for _, test := range []struct {
		cached *v1alpha1.OmniCluster
		want   bool
	}{{b.get(), true}, {old, false}} {
		if got, err := b.reconciler.specIsCurrent(t.Context(), test.cached); err != nil || got != test.want {
			t.Errorf("generation %d: %v, %v", test.cached.Generation, got, err)
		}
	}

	other := b.get()
	other.Spec.Kubernetes.Manifests[0].Name = "b"

	if got, err := b.reconciler.specIsCurrent(t.Context(), other); err != nil || got {
		t.Errorf("another spec of the same generation: %v, %v", got, err)
	}
}
