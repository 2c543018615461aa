package omnihelmrelease

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
)

// A mark from before it named a hub gets the hub once, by no action, and the status stays.
func TestAnOldMarkIsCompletedOnce(t *testing.T) {
	b := newBench(t)
	b.settle()

	if got := b.cluster.revisions[0].Hub; got != thisHub {
		t.Fatalf("the mark names hub %q", got)
	}

	b.cluster.revisions[0].Hub = ""
	before := b.get()
	b.said()

	for range 3 {
		b.settle()
		b.restart()
	}

	want := []helm.Mark{{Revision: 1, Owner: "uid-of-app", To: thisHub}}
	if diff := cmp.Diff(want, b.cluster.marks); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}

	b.wantActions(helm.ActionInstall)

	if after := b.get(); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the status was written: %+v", after.Status)
	}

	if said := b.said(); strings.Count(said, "MarkCompleted") != 1 {
		t.Errorf("events: %s", said)
	}
}

// What another hub made for the same object is neither upgraded, nor rolled back, nor taken, nor uninstalled.
func TestAReleaseOfAnotherHub(t *testing.T) {
	b := newBench(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.RollbackOnFailure = new(true) })
	b.settle()
	b.cluster.revisions[0].Hub = "hub-2"
	b.edit(func(r *v1alpha1.OmniHelmRelease) {
		r.Spec.TakeOwnership = true
		r.Spec.Chart.Values = &v1alpha1.FreeForm{Raw: []byte(`{"a":1}`)}
	})
	b.settle()

	message := b.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonOwnedByOtherHub)
	for _, words := range []string{"default/app", "another hub, hub-2 (this hub is hub-1)", v1alpha1.AnnotationPreviousHub + ": hub-2", `OmniConnection "omni"`} {
		if !strings.Contains(message, words) {
			t.Errorf("%q does not say %q", message, words)
		}
	}

	// A revision that failed there is not rolled back here.
	b.cluster.revisions = append([]helm.Revision{{Number: 2, Status: helm.StatusFailed, Owner: "uid-of-app", Hub: "hub-2"}}, b.cluster.revisions...)
	b.pass(time.Hour)
	b.settle()
	b.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonOwnedByOtherHub)
	b.remove()
	b.settle()

	if !b.gone() || len(b.cluster.revisions) != 2 || len(b.cluster.marks) != 0 {
		t.Errorf("gone: %v, revisions %+v, marks %+v", b.gone(), b.cluster.revisions, b.cluster.marks)
	}

	b.wantActions(helm.ActionInstall)

	if said := b.said(); !strings.Contains(said, "Warning LeftBehind Helm release default/app stays") || !strings.Contains(said, "hub-2") {
		t.Errorf("events: %s", said)
	}
}

// A person says that the other hub is gone: its release goes on without a new revision, and is uninstalled with the object.
func TestAReleaseOfThePreviousHub(t *testing.T) {
	b := newBench(t)
	b.settle()
	b.cluster.revisions[0].Hub = "hub-2"
	b.access.hubs = hubs.Hubs{Own: thisHub, Previous: "hub-2"}
	b.access.cleanup.Opened.Hubs = b.access.hubs
	b.said()
	b.settle()
	b.settle()
	b.wantActions(helm.ActionInstall)
	b.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)

	if said := b.said(); b.cluster.revisions[0].Hub != thisHub || strings.Count(said, "TakenOver Took release default/app over from hub hub-2") != 1 {
		t.Errorf("hub %q, events: %s", b.cluster.revisions[0].Hub, said)
	}

	b.cluster.revisions[0].Hub = "hub-2"
	b.remove()
	b.settle()
	b.wantActions(helm.ActionInstall, helm.ActionUninstall)
}

// A mark that cannot be completed is said, and tried again.
func TestAMarkThatCannotBeWritten(t *testing.T) {
	b := newBench(t)
	b.settle()
	b.cluster.revisions[0].Hub = ""
	b.cluster.unmarkable = &helm.Error{Reason: helm.ReasonForbidden, Message: "write the hub: no"}
	b.settle()

	if message := b.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonForbidden); !strings.Contains(message, "write the hub: no") {
		t.Error(message)
	}

	b.cluster.unmarkable = &helm.Error{Reason: helm.ReasonInterrupted, Message: "somebody was quicker"}
	b.settle()
	b.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonConflict)

	b.cluster.unmarkable = nil
	b.settle()
	b.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
}

// An owner is named as far as it is known, with a way out.
func TestWhoTheOwnerIs(t *testing.T) {
	for name, test := range map[string]struct {
		claim claim
		says  []string
	}{
		"it lives":       {claim{uid: "a", owner: "b", ownerName: "team/app", exists: true}, []string{"OmniHelmRelease team/app (UID b)", "deletionPolicy Orphan"}},
		"it is gone":     {claim{uid: "a", owner: "b", exists: true}, []string{"that is not here (UID b)", "set spec.takeOwnership"}},
		"in another hub": {claim{uid: "a", owner: "b", hub: "x", hubs: hubs.Hubs{Own: "y"}, exists: true}, []string{"UID b of another hub, x (this hub is y)", "delete it there"}},
	} {
		_, why := test.claim.refused("ns/app")
		for _, words := range test.says {
			if !strings.Contains(why, words) {
				t.Errorf("%s: %q does not say %q", name, why, words)
			}
		}
	}
}

// withValues sets the values of the chart.
func withValues(text string) func(*v1alpha1.OmniHelmRelease) {
	return func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Values = &v1alpha1.FreeForm{Raw: []byte(text)} }
}

// restored is a release whose object is in an older state than the one that made revision 2, as after the restore of a
// snapshot.
func restored(t *testing.T) *bench {
	t.Helper()

	b := newBench(t)
	b.settle()

	snapshot := b.get()

	b.edit(withValues(`{"a":1}`))
	b.edit(withValues(`{"a":2}`))
	b.settle()
	b.wantActions(helm.ActionInstall, helm.ActionUpgrade)
	b.restore(snapshot)
	b.restart()

	return b
}

// restore writes an object as it was, with its status.
func (b *bench) restore(snapshot *v1alpha1.OmniHelmRelease) {
	b.t.Helper()

	snapshot = snapshot.DeepCopy()
	snapshot.ResourceVersion = b.get().ResourceVersion
	status := snapshot.Status

	if err := b.client.Update(b.t.Context(), snapshot); err != nil {
		b.t.Fatal(err)
	}

	snapshot.Status = status
	if err := b.client.Status().Update(b.t.Context(), snapshot); err != nil {
		b.t.Fatal(err)
	}
}

func suspend(on bool) func(*v1alpha1.OmniHelmRelease) {
	return func(r *v1alpha1.OmniHelmRelease) { r.Spec.Suspend = on }
}

// Edits that ask for something else make no older state a later one, however often the generation rises.
func TestAnOlderStateStaysOlder(t *testing.T) {
	interval := func(r *v1alpha1.OmniHelmRelease) { r.Spec.Interval = "7m" }

	for name, edits := range map[string][]func(*v1alpha1.OmniHelmRelease){
		"suspended and resumed": {nil, suspend(true), suspend(false)},
		"suspended at once":     {suspend(true), suspend(false), suspend(true), suspend(false)},
		"another interval":      {nil, interval, suspend(true), suspend(false)},
	} {
		t.Run(name, func(t *testing.T) {
			b := restored(t)

			for _, edit := range edits {
				if edit != nil {
					b.edit(edit)
				}

				b.settle()
			}

			b.wantActions(helm.ActionInstall, helm.ActionUpgrade)
			b.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonOlderState)
		})
	}
}

// Once the object says what runs, it is as any other: later edits are upgrades.
func TestAnOlderStateThatIsWrittenAnew(t *testing.T) {
	b := restored(t)
	b.settle()
	b.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonOlderState)

	b.edit(withValues(`{"a":2}`))
	b.settle()
	b.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
	b.wantActions(helm.ActionInstall, helm.ActionUpgrade)

	b.edit(withValues(`{"a":3}`))
	b.settle()
	b.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
	b.wantActions(helm.ActionInstall, helm.ActionUpgrade, helm.ActionUpgrade)
}

// An object of a former version does not say what it attempted: its generation has to do.
func TestAnOlderStateOfAFormerVersion(t *testing.T) {
	b := restored(t)

	former := b.get()
	former.Status.LastAttemptedGeneration = 0

	if err := b.client.Status().Update(t.Context(), former); err != nil {
		t.Fatal(err)
	}

	b.settle()
	b.wantActions(helm.ActionInstall, helm.ActionUpgrade)
	b.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonOlderState)
}

// A controller that dies after it began an upgrade, and an object that is edited before the next one starts, are no older
// state.
func TestACrashIsNoOlderState(t *testing.T) {
	b := newBench(t)
	b.settle()
	b.edit(withValues(`{"a":1}`))
	b.look() // writes what it will attempt

	begun := b.get()

	b.settle()
	b.wantActions(helm.ActionInstall, helm.ActionUpgrade)

	// The status of the end of the action is lost.
	b.restore(begun)
	b.restart()
	b.edit(withValues(`{"a":2}`))
	b.settle()
	b.wantActions(helm.ActionInstall, helm.ActionUpgrade, helm.ActionUpgrade)
	b.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
}

// What a later state of the object installed is not replaced before somebody says so.
func TestAnOlderStateReplacesNothing(t *testing.T) {
	b := restored(t)
	b.settle()
	b.wantActions(helm.ActionInstall, helm.ActionUpgrade)

	message := b.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonOlderState)
	for _, words := range []string{"revision 2 of release default/app", v1alpha1.AnnotationReplaceRevision + `: "2"`} {
		if !strings.Contains(message, words) {
			t.Errorf("%q does not say %q", message, words)
		}
	}

	before := b.get()
	b.settle()

	if after := b.get(); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("a second run wrote the status: %+v", after.Status)
	}

	annotated := b.get()
	annotated.Annotations = map[string]string{v1alpha1.AnnotationReplaceRevision: "2"}

	if err := b.client.Update(t.Context(), annotated); err != nil {
		t.Fatal(err)
	}

	b.settle()
	b.wantActions(helm.ActionInstall, helm.ActionUpgrade, helm.ActionUpgrade)
	b.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
}

// The deletion of the object asks for the end of the release, whichever state made it.
func TestAnOlderStateIsUninstalled(t *testing.T) {
	b := restored(t)
	b.remove()
	b.settle()
	b.wantActions(helm.ActionInstall, helm.ActionUpgrade, helm.ActionUninstall)

	if !b.gone() {
		t.Error("the object stays")
	}
}
