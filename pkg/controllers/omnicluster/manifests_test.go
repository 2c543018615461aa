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
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// wants makes the OmniCluster want manifests, each a Namespace of its name.
func (f *fixture) wants(mode v1alpha1.ManifestMode, names ...string) {
	f.t.Helper()
	f.edit(func(o *v1alpha1.OmniCluster) {
		o.Spec.Kubernetes.Manifests = nil

		for _, name := range names {
			object := v1alpha1.FreeForm{Raw: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + name + `"}}`)}
			o.Spec.Kubernetes.Manifests = append(o.Spec.Kubernetes.Manifests,
				v1alpha1.Manifest{Name: name, Mode: mode, Inline: []v1alpha1.FreeForm{object}})
		}
	})
}

// withManifests is running with manifest groups of mode full.
func withManifests(t *testing.T, names ...string) *fixture {
	t.Helper()

	f := running(t)
	f.wants(v1alpha1.ManifestFull, names...)
	f.wantRecorded(idsOfManifests(names...)...)
	f.quiet()

	return f
}

func idsOfManifests(names ...string) []string {
	var ids []string
	for i, name := range names {
		ids = append(ids, "20"+string(rune('0'+i))+"-cluster-demo-"+name)
	}

	return ids
}

// wantRecorded runs until status.appliedManifests is as wanted.
func (f *fixture) wantRecorded(ids ...string) {
	f.t.Helper()
	f.eventually("the record of manifests", func() string {
		f.run()

		return cmp.Diff(ids, f.get().Status.AppliedManifests)
	})
}

// manifestsByHand makes a group past our operator.
func (f *fixture) manifestsByHand(id string, mode specs.KubernetesManifestGroupSpec_Mode) {
	f.t.Helper()

	group := inCluster(omnires.NewKubernetesManifestGroup(id))
	group.TypedSpec().Value.Mode = mode

	if err := group.TypedSpec().Value.SetUncompressedData([]byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: databases}\n")); err != nil {
		f.t.Fatal(err)
	}

	f.byHand(group)
}

func (f *fixture) hasManifests(id string) bool {
	_, err := safe.StateGetByID[*omnires.KubernetesManifestGroup](f.t.Context(), f.omni.State(), id)

	return err == nil
}

// waits lets a long time pass, in which nothing may be destroyed.
func (f *fixture) waits() {
	f.t.Helper()

	for range 5 {
		f.advance(settleTime)
		f.run()
	}

	f.quiet()
	f.wantTornDown()
}

// The objects that somebody keeps in a cluster through Omni stay there until somebody approves.
func TestManifestsMadeByHandWaitForApproval(t *testing.T) {
	for _, policy := range []v1alpha1.ChangePolicy{v1alpha1.ChangePolicyApply, v1alpha1.ChangePolicyConfirmDestructive} {
		t.Run(string(policy), func(t *testing.T) {
			f := withManifests(t, "ours")
			f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = policy })
			f.manifestsByHand("by-hand", specs.KubernetesManifestGroupSpec_FULL)

			cluster := f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
			says(t, message(cluster, "Ready"), `KubernetesManifestGroup "by-hand"`, "not made by this object")

			if got := cluster.Status.Plan.Changes[0]; !got.Destructive || !got.NeedsApproval {
				t.Errorf("%+v", got)
			}

			f.waits()

			// What is asked for goes on beside it.
			f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"harmless": "yes"} })
			f.eventually("the harmless change", func() string {
				f.run()

				return map[bool]string{false: "not there"}[f.view().Labels["harmless"] == "yes"]
			})

			f.approvePlan()
			f.until("Ready", metav1.ConditionTrue, "Running")
			f.wantTornDown("KubernetesManifestGroups by-hand")
			f.wantRecorded(idsOfManifests("ours")...)
		})
	}
}

// What Omni applied once stays in the cluster, so nobody is asked.
func TestOneTimeManifestsGoAtOnce(t *testing.T) {
	f := running(t)
	f.wants(v1alpha1.ManifestOneTime, "ours")
	f.until("Synced", metav1.ConditionTrue, "")
	f.manifestsByHand("by-hand", specs.KubernetesManifestGroupSpec_ONE_TIME)
	f.wants(v1alpha1.ManifestOneTime)
	f.eventually("both to go", func() string {
		f.run()

		return strings.Join(f.leftOf("by-hand", "200-cluster-demo-ours"), " ")
	})

	if got := f.get().Status.AppliedManifests; got != nil {
		t.Errorf("recorded: %v", got)
	}
}

func (f *fixture) leftOf(ids ...string) []string {
	var left []string

	for _, id := range ids {
		if f.hasManifests(id) {
			left = append(left, id)
		}
	}

	return left
}

// A document's own manifest goes after the settle time, and stays if it is back by then.
func TestManifestsTakenOffSettle(t *testing.T) {
	f := withManifests(t, "a", "b")
	f.wants(v1alpha1.ManifestFull, "a")
	says(t, message(f.until("Synced", metav1.ConditionFalse, "WaitingToSettle"), "Synced"), `KubernetesManifestGroup "201-cluster-demo-b"`)
	f.advance(settleTime - time.Second)
	f.run()
	f.wants(v1alpha1.ManifestFull, "a", "b")
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.waits()

	f.wants(v1alpha1.ManifestFull, "a")
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.wantTornDown()
	f.advance(settleTime)
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.wantTornDown("KubernetesManifestGroups 201-cluster-demo-b")
	f.wantRecorded(idsOfManifests("a")...)
	f.quiet()
}

func TestManifestsTakenOffWithConfirmation(t *testing.T) {
	f := withManifests(t, "a")
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive })
	f.wants(v1alpha1.ManifestFull)
	f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	f.waits()
	f.approvePlan()
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.wantTornDown("KubernetesManifestGroups 200-cluster-demo-a")
}

// Another place in the list would be another ID in Omni: the group keeps the one that it has.
func TestManifestsThatOnlyMoveDoNotWait(t *testing.T) {
	f := withManifests(t, "a")
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive })
	f.wants(v1alpha1.ManifestFull, "new", "a")
	f.until("Synced", metav1.ConditionTrue, "")
	f.wantRecorded("200-cluster-demo-a", "200-cluster-demo-new")
	f.wantTornDown()
	f.quiet()
}

// A renamed group has another ID, but no object goes for it.
func TestManifestsThatAreRenamedDoNotWait(t *testing.T) {
	f := withManifests(t, "a")
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive })
	f.wants(v1alpha1.ManifestFull, "a")
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Kubernetes.Manifests[0].Name = "b" })
	f.until("Synced", metav1.ConditionTrue, "")
	f.wantRecorded("200-cluster-demo-b")
	f.wantTornDown("KubernetesManifestGroups 200-cluster-demo-a")
	f.quiet()
}

// Omni is upgraded, and the groups get the IDs of its new templates: by a migration, if it has one, or by somebody's template. In
// both directions nothing is written, what is recorded follows, and the group goes with its document, without a question.
func TestManifestsWithTheIDsOfNewerTemplates(t *testing.T) {
	f := withManifests(t, "a", "b")
	if err := f.omni.Upgrade("1.11"); err != nil {
		t.Fatal(err)
	}

	for _, numbered := range []bool{false, true} {
		if err := omnisim.MoveManifestGroups(t.Context(), f.omni.State(), testCluster, numbered); err != nil {
			t.Fatal(err)
		}

		want := map[bool][]string{false: {"cluster-demo-a", "cluster-demo-b"}, true: {"200-cluster-demo-a", "201-cluster-demo-b"}}[numbered]
		writes := f.remoteWrites()

		f.wantRecorded(want...)
		f.until("Ready", metav1.ConditionTrue, "Running")
		f.quiet()

		if got := f.omni.Writes()[writes:]; len(got) > 0 {
			t.Errorf("wrote %v", got)
		}
	}

	if err := omnisim.MoveManifestGroups(t.Context(), f.omni.State(), testCluster, false); err != nil {
		t.Fatal(err)
	}

	f.wantRecorded("cluster-demo-a", "cluster-demo-b")

	begun := len(f.tornDown())

	f.wants(v1alpha1.ManifestFull, "a")
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.advance(settleTime)
	f.until("Ready", metav1.ConditionTrue, "Running")

	if got := f.tornDown()[begun:]; len(got) != 1 || got[0] != "KubernetesManifestGroups cluster-demo-b" {
		t.Errorf("destroyed %v", got)
	}

	f.quiet()
}

// Omni removes the objects of a group that leaves mode full, so that settles, and
// is a question if it was not this object that made the group full.
func TestManifestsThatLeaveModeFull(t *testing.T) {
	f := withManifests(t, "a")
	f.wants(v1alpha1.ManifestOneTime, "a")
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.wantRecorded(idsOfManifests("a")...)
	f.advance(settleTime)
	f.until("Synced", metav1.ConditionTrue, "")
	f.wantRecorded()

	if _, err := safe.StateUpdateWithConflicts(t.Context(), f.omni.State(), omnires.NewKubernetesManifestGroup("200-cluster-demo-a").Metadata(),
		func(group *omnires.KubernetesManifestGroup) error {
			group.TypedSpec().Value.Mode = specs.KubernetesManifestGroupSpec_FULL

			return nil
		}); err != nil {
		t.Fatal(err)
	}

	says(t, message(f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval"), "Ready"), "not made full by this object")
	f.waits()
	f.approvePlan()
	f.until("Ready", metav1.ConditionTrue, "Running")
}

// Our etcd was restored, or the status is of a release without the record.
func TestManifestsThatNoRecordNames(t *testing.T) {
	f := withManifests(t, "a", "later")
	cluster := f.get()
	cluster.Status.AppliedManifests = nil

	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	// The documents of before do not know the one, and want the other.
	f.wants(v1alpha1.ManifestFull, "a")
	f.restart()
	says(t, message(f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval"), "Ready"), `"201-cluster-demo-later"`)
	f.waits()
	f.wantRecorded(idsOfManifests("a")...)
	f.wants(v1alpha1.ManifestFull, "a", "later")
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.wantRecorded(idsOfManifests("a", "later")...)
	f.quiet()
}

// A spec that only a cache has does not make the record grow.
func TestStaleSpecRecordsNothing(t *testing.T) {
	f := running(t)
	old := f.get()
	f.wants(v1alpha1.ManifestFull, "a")

	for _, test := range []struct {
		cached *v1alpha1.OmniCluster
		want   bool
	}{{f.get(), true}, {old, false}} {
		if got, err := f.reconciler.specIsCurrent(t.Context(), test.cached); err != nil || got != test.want {
			t.Errorf("generation %d: %v, %v", test.cached.Generation, got, err)
		}
	}

	other := f.get()
	other.Spec.Kubernetes.Manifests[0].Name = "b"

	if got, err := f.reconciler.specIsCurrent(t.Context(), other); err != nil || got {
		t.Errorf("another spec of the same generation: %v, %v", got, err)
	}
}
