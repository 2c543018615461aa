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
	f := newFixture(t)
	f.settle()

	if got := f.cluster.revisions[0].Hub; got != thisHub {
		t.Fatalf("the mark names hub %q", got)
	}

	f.cluster.revisions[0].Hub = ""
	before := f.get()
	f.said()

	for range 3 {
		f.settle()
		f.restart()
	}

	want := []helm.Mark{{Revision: 1, Owner: "uid-of-app", To: thisHub}}
	if diff := cmp.Diff(want, f.cluster.marks); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}

	f.wantActions(helm.ActionInstall)

	if after := f.get(); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the status was written: %+v", after.Status)
	}

	if said := f.said(); strings.Count(said, "MarkCompleted") != 1 {
		t.Errorf("events: %s", said)
	}
}

// What another hub made for the same object is neither upgraded, nor rolled back, nor taken, nor uninstalled.
func TestAReleaseOfAnotherHub(t *testing.T) {
	f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.RollbackOnFailure = new(true) })
	f.settle()
	f.cluster.revisions[0].Hub = "hub-2"
	f.edit(func(r *v1alpha1.OmniHelmRelease) {
		r.Spec.TakeOwnership = true
		r.Spec.Chart.Values = &v1alpha1.FreeForm{Raw: []byte(`{"a":1}`)}
	})
	f.settle()

	message := f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonOwnedByOtherHub)
	for _, words := range []string{"default/app", "another hub, hub-2 (this hub is hub-1)", v1alpha1.AnnotationPreviousHub + ": hub-2", `OmniConnection "omni"`} {
		if !strings.Contains(message, words) {
			t.Errorf("%q does not say %q", message, words)
		}
	}

	// A revision that failed there is not rolled back here.
	f.cluster.revisions = append([]helm.Revision{{Number: 2, Status: helm.StatusFailed, Owner: "uid-of-app", Hub: "hub-2"}}, f.cluster.revisions...)
	f.pass(time.Hour)
	f.settle()
	f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonOwnedByOtherHub)
	f.remove()
	f.settle()

	if !f.gone() || len(f.cluster.revisions) != 2 || len(f.cluster.marks) != 0 {
		t.Errorf("gone: %v, revisions %+v, marks %+v", f.gone(), f.cluster.revisions, f.cluster.marks)
	}

	f.wantActions(helm.ActionInstall)

	if said := f.said(); !strings.Contains(said, "Warning LeftBehind Helm release default/app stays") || !strings.Contains(said, "hub-2") {
		t.Errorf("events: %s", said)
	}
}

// A person says that the other hub is gone: its release goes on without a new revision, and is uninstalled with the object.
func TestAReleaseOfThePreviousHub(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.cluster.revisions[0].Hub = "hub-2"
	f.access.hubs = hubs.Hubs{Own: thisHub, Previous: "hub-2"}
	f.access.cleanup.Opened.Hubs = f.access.hubs
	f.said()
	f.settle()
	f.settle()
	f.wantActions(helm.ActionInstall)
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)

	if said := f.said(); f.cluster.revisions[0].Hub != thisHub || strings.Count(said, "TakenOver Took release default/app over from hub hub-2") != 1 {
		t.Errorf("hub %q, events: %s", f.cluster.revisions[0].Hub, said)
	}

	f.cluster.revisions[0].Hub = "hub-2"
	f.remove()
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUninstall)
}

// A mark that cannot be completed is said, and tried again.
func TestAMarkThatCannotBeWritten(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.cluster.revisions[0].Hub = ""
	f.cluster.unmarkable = &helm.Error{Reason: helm.ReasonForbidden, Message: "write the hub: no"}
	f.wantTriedSoon("write the hub: no")

	f.cluster.unmarkable = &helm.Error{Reason: helm.ReasonInterrupted, Message: "somebody was quicker"}
	f.settle()
	f.want(v1alpha1.ConditionReleased, no, v1alpha1.ReasonConflict)

	f.cluster.unmarkable = nil
	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
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

// Upgrades by hand push the revisions with our mark out of Helm's history. What is left cannot be told from somebody else's
// release: it is said how that came, nothing is touched, and takeOwnership goes on with it.
func TestMarksThatWerePruned(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.edit(suspend(true))
	f.settle()

	f.cluster.revisions = []helm.Revision{{Number: 12, Status: helm.StatusDeployed}, {Number: 11, Status: helm.StatusSuperseded}}
	copied := f.get()

	f.edit(suspend(false))
	f.settle()

	message := f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonForeignTarget)
	for _, words := range []string{"default/app", "this object made a release of that name", "none of its revisions", "spec.takeOwnership"} {
		if !strings.Contains(message, words) {
			t.Errorf("%q does not say %q", message, words)
		}
	}

	f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.TakeOwnership = true })
	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade)

	f.cluster.revisions = f.cluster.revisions[1:]
	f.restore(copied)
	f.said()
	f.remove()
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade)

	if said := f.said(); !f.gone() || !strings.Contains(said, "LeftBehind") || !strings.Contains(said, "none of its revisions") {
		t.Errorf("gone: %t, events: %s", f.gone(), said)
	}
}

// withValues sets the values of the chart.
func withValues(text string) func(*v1alpha1.OmniHelmRelease) {
	return func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Values = &v1alpha1.FreeForm{Raw: []byte(text)} }
}

// restored is a release whose object is in an older state than the one that made revision 2, as after the restore of a
// snapshot.
func restored(t *testing.T) *fixture {
	t.Helper()

	f := newFixture(t)
	f.settle()

	snapshot := f.get()

	f.edit(withValues(`{"a":1}`))
	f.edit(withValues(`{"a":2}`))
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade)
	f.restore(snapshot)
	f.restart()

	return f
}

// restore writes an object as it was, with its status.
func (f *fixture) restore(snapshot *v1alpha1.OmniHelmRelease) {
	f.t.Helper()

	snapshot = snapshot.DeepCopy()
	snapshot.ResourceVersion = f.get().ResourceVersion
	status := snapshot.Status

	if err := f.client.Update(f.t.Context(), snapshot); err != nil {
		f.t.Fatal(err)
	}

	snapshot.Status = status
	if err := f.client.Status().Update(f.t.Context(), snapshot); err != nil {
		f.t.Fatal(err)
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
			f := restored(t)

			for _, edit := range edits {
				if edit != nil {
					f.edit(edit)
				}

				f.settle()
			}

			f.wantActions(helm.ActionInstall, helm.ActionUpgrade)
			f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonOlderState)
		})
	}
}

// What a later state of the object left without a result is not unlocked for an older one: that would be the first step of
// the upgrade that must not begin, and count as an attempt of this generation.
func TestAnOlderStateUnlocksNothing(t *testing.T) {
	f := restored(t)
	left := &f.cluster.revisions[0]
	left.Status, left.Process, left.Modified = helm.StatusPendingUpgrade, "another", f.now().Add(-time.Hour)

	for f.get().Generation < left.Generation {
		f.edit(withValues(`{"a":3}`))
	}

	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade)
	f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonOlderState)

	replace := func(r *v1alpha1.OmniHelmRelease) {
		r.Annotations = map[string]string{v1alpha1.AnnotationReplaceRevision: "2"}
	}

	f.edit(replace)
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade, helm.ActionUnlock, helm.ActionUpgrade)
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
}

// Once the object says what runs, it is as any other: later edits are upgrades.
func TestAnOlderStateThatIsWrittenAnew(t *testing.T) {
	f := restored(t)
	f.settle()
	f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonOlderState)

	f.edit(withValues(`{"a":2}`))
	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade)

	f.edit(withValues(`{"a":3}`))
	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade, helm.ActionUpgrade)
}

// A status that was lost does not say what was attempted: the object's generation has to do.
func TestAnOlderStateWithoutStatus(t *testing.T) {
	f := restored(t)

	release := f.get()
	release.Status.LastAttemptedGeneration = 0

	if err := f.client.Status().Update(t.Context(), release); err != nil {
		t.Fatal(err)
	}

	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade)
	f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonOlderState)
}

// A controller that dies after it began an upgrade, and an object that is edited before the next one starts, are no older
// state.
func TestACrashIsNoOlderState(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.edit(withValues(`{"a":1}`))
	f.look() // writes what it will attempt

	begun := f.get()

	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade)

	// The status of the end of the action is lost.
	f.restore(begun)
	f.restart()
	f.edit(withValues(`{"a":2}`))
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade, helm.ActionUpgrade)
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
}

// What a later state of the object installed is not replaced before somebody says so.
func TestAnOlderStateReplacesNothing(t *testing.T) {
	f := restored(t)
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade)

	message := f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonOlderState)
	for _, words := range []string{"revision 2 of release default/app", v1alpha1.AnnotationReplaceRevision + `: "2"`} {
		if !strings.Contains(message, words) {
			t.Errorf("%q does not say %q", message, words)
		}
	}

	before := f.get()
	f.settle()

	if after := f.get(); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("a second run wrote the status: %+v", after.Status)
	}

	annotated := f.get()
	annotated.Annotations = map[string]string{v1alpha1.AnnotationReplaceRevision: "2"}

	if err := f.client.Update(t.Context(), annotated); err != nil {
		t.Fatal(err)
	}

	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade, helm.ActionUpgrade)
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
}

// The deletion of the object asks for the end of the release, whichever state made it.
func TestAnOlderStateIsUninstalled(t *testing.T) {
	f := restored(t)
	f.remove()
	f.settle()
	f.wantActions(helm.ActionInstall, helm.ActionUpgrade, helm.ActionUninstall)

	if !f.gone() {
		t.Error("the object stays")
	}
}
