package omnicluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

func TestRivalry(t *testing.T) {
	patch := plan.Change{Action: plan.ActionUpdate, Type: "ConfigPatches.omni.sidero.dev", ID: "p"}
	other := plan.Change{Action: plan.ActionUpdate, Type: "ConfigPatches.omni.sidero.dev", ID: "q"}
	rest := plan.Change{Action: plan.ActionUpdate, Type: plan.TypeCluster, ID: "c"}
	talos, kubernetes := rest, rest
	talos.Part, kubernetes.Part = "Talos", "Kubernetes"

	type write struct {
		at      time.Duration
		content string
		settled bool
		changes []plan.Change
	}

	same := func(times ...time.Duration) []write {
		var writes []write
		for _, at := range times {
			writes = append(writes, write{at, "a", true, []plan.Change{patch}})
		}

		return writes
	}
	first := func(writes []write) []write {
		writes[0].settled = false

		return writes
	}
	differing := func(writes []write) []write {
		for i := range writes {
			writes[i].content = string(rune('a' + i))
		}

		return writes
	}
	alternating := func(writes []write) []write {
		for i := range writes {
			if i%2 == 1 {
				writes[i].changes = []plan.Change{other}
			}
		}

		return writes
	}

	joined := func(writes []write) []write {
		for i := range writes {
			writes[i].changes = []plan.Change{rest, talos, kubernetes}
		}

		return writes
	}

	for name, test := range map[string]struct {
		writes []write
		found  int // by which write, from 1; 0: never
	}{
		"three times in a minute":                   {same(0, time.Second, 2*time.Second), 3},
		"three times in exactly a minute":           {same(0, 30*time.Second, time.Minute), 3},
		"three times in more than a minute":         {same(0, 30*time.Second, 61*time.Second), 0},
		"slowly, then three times":                  {same(0, 50*time.Second, 100*time.Second, 101*time.Second), 4},
		"twice":                                     {same(0, time.Second), 0},
		"the first one is no correction":            {first(same(0, 1, 2)), 0},
		"the first is none, and then three":         {first(same(0, 1, 2, 3)), 4},
		"the content is another each time":          {differing(same(0, 1, 2, 3, 4)), 0},
		"two resources, twice each":                 {alternating(same(0, 1, 2, 3)), 0},
		"two resources, one of them a third time":   {alternating(same(0, 1, 2, 3, 4)), 5},
		"three parts of a cluster, in one write":    {joined(same(0)), 0},
		"three parts of a cluster, twice":           {joined(same(0, 1)), 0},
		"three parts of a cluster, three times":     {joined(same(0, 1, 2)), 3},
		"often, with more than a minute in between": {same(0, 61*time.Second, 122*time.Second, 183*time.Second), 0},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Unix(1_000_000, 0)
			watched, found := &revertWatch{}, 0

			for i, write := range test.writes {
				if _, is := watched.wrote(write.changes, write.content, write.settled, begin.Add(write.at)); is && found == 0 {
					found = i + 1
				}
			}

			if found != test.found {
				t.Errorf("found by write %d, want %d", found, test.found)
			}
		})
	}
}

// What was found stays, until somebody wants something new.
func TestRivalryIsLeft(t *testing.T) {
	type documents = map[types.UID]int64

	for name, test := range map[string]struct {
		edit    func(*intent)
		removes bool
		stays   bool
	}{
		"nothing new":                        {func(*intent) {}, false, true},
		"a new generation":                   {func(w *intent) { w.documents = documents{"c": 2, "w": 1} }, false, false},
		"a new document":                     {func(w *intent) { w.documents = documents{"c": 1, "w": 1, "x": 1} }, false, false},
		"an edit that removes":               {func(w *intent) { w.documents = documents{"c": 2, "w": 1} }, true, true},
		"a document less":                    {func(w *intent) { w.documents = documents{"c": 1} }, true, true},
		"a document less, nothing to remove": {func(w *intent) { w.documents = documents{"c": 1} }, false, true},
		"a document less, and an edit":       {func(w *intent) { w.documents = documents{"c": 2} }, true, true},
		"a document in another's place":      {func(w *intent) { w.documents = documents{"c": 1, "x": 1} }, false, false},
		"a request to reconcile":             {func(w *intent) { w.asked = "now" }, false, false},
		"a request, and a removal":           {func(w *intent) { w.asked, w.documents = "now", documents{"c": 1} }, true, false},
		"deleted":                            {func(w *intent) { w.documents, w.deleting = nil, true }, false, true},
		"deleted, and requested":             {func(w *intent) { w.documents, w.deleting, w.asked = nil, true, "now" }, false, false},
	} {
		base := intent{documents: documents{"c": 1, "w": 1}, asked: "-"}
		watched, now := &revertWatch{intent: base, found: "somebody"}, base
		test.edit(&now)

		for range 2 {
			watched.observe(now, test.removes)
		}

		if stays := watched.found != ""; stays != test.stays {
			t.Errorf("%s: stays %v", name, stays)
		}
	}
}

// war changes the cluster past the controller, as another hub with the same ID does, until the controller gives in.
func (f *fixture) war() *v1alpha1.OmniCluster {
	f.t.Helper()

	for range revertLimit {
		if err := omnisim.SetKubernetesVersion(f.t.Context(), f.omni.State(), testCluster, "1.35.4"); err != nil {
			f.t.Fatal(err)
		}

		before := f.remoteWrites()
		f.eventually("the change to be taken back", func() string {
			if f.run(); f.remoteWrites() == before {
				return "no write"
			}

			return ""
		})
		f.advance(time.Second)
	}

	return f.until("Stalled", metav1.ConditionTrue, "SecondWriter")
}

func TestSecondWriterStopsAllWrites(t *testing.T) {
	f := running(t)
	f.advance(time.Hour)

	cluster := f.war()
	says(t, message(cluster, "Stalled"), `Cluster "demo"`, "3 times", "--hub-id", v1alpha1.AnnotationReconcileRequestedAt)

	if err := omnisim.SetKubernetesVersion(t.Context(), f.omni.State(), testCluster, "1.35.4"); err != nil {
		t.Fatal(err)
	}

	before := f.remoteWrites()

	for range 3 {
		f.advance(time.Hour)
		f.run()
	}

	if f.remoteWrites() != before {
		t.Errorf("Omni took %q", f.writesSince(before))
	}

	f.quiet()

	// Neither a deletion goes on.
	f.delete(newCluster())
	cluster = f.until("DeletionBlocked", metav1.ConditionTrue, "SecondWriter")
	says(t, message(cluster, "DeletionBlocked"), "is not destroyed", "orphan")
	f.quiet()

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.Orphan = true })
	f.untilGone()

	if view := f.view(); f.remoteWrites() != before || !view.Exists || view.Annotations[v1alpha1.MarkOwnerUID] == "" {
		t.Errorf("Omni took %q, and has %+v", f.writesSince(before), view)
	}
}

// Whoever has looked into it lets it go on: by a request, or by an edit.
func TestSecondWriterIsLeft(t *testing.T) {
	for name, edit := range map[string]func(*fixture){
		"asked": func(f *fixture) {
			f.edit(func(o *v1alpha1.OmniCluster) {
				o.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
				o.Generation-- // annotations are no new generation
			})
		},
		"edited": func(f *fixture) {
			f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"a": "b"} })
		},
		"a document edited": func(f *fixture) {
			change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.Labels = map[string]string{"a": "b"} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := running(t)
			f.war()
			edit(f)
			f.until("Ready", metav1.ConditionTrue, "Running")
			f.quiet()
		})
	}
}

// A removal ends no hold: neither that of a set's document, nor of a machine or a size in one, whatever is edited besides, and also
// after a restart. A request does.
func TestSecondWriterHoldsRemovals(t *testing.T) {
	label := func(f *fixture) {
		f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"a": "b"} })
	}

	for name, remove := range map[string]func(*fixture){
		"a set":              func(f *fixture) { f.delete(newWorkers("w", machineClass, 2)) },
		"a set, and an edit": func(f *fixture) { f.delete(newWorkers("w", machineClass, 2)); label(f) },
		"a size": func(f *fixture) {
			change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size.IntVal = 1 })
		},
		"a machine's settings":  func(f *fixture) { f.delete(newMachineWithSettings(f.machines[0])) },
		"a set, and a restart":  func(f *fixture) { f.delete(newWorkers("w", machineClass, 2)); f.run(); f.restart() },
		"a restart, then a set": func(f *fixture) { f.restart(); f.delete(newWorkers("w", machineClass, 2)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newCluster(), newWorkers("w", machineClass, 2))
			f.create(newControlPlane("cp", f.machines[0]), newMachineWithSettings(f.machines[0]))
			f.until("Ready", metav1.ConditionTrue, "Running")
			f.quiet()
			f.war()

			before := f.remoteWrites()

			remove(f)

			for range 3 {
				f.run()
				f.advance(settleTime + time.Second)
			}

			f.until("Stalled", metav1.ConditionTrue, "SecondWriter")
			f.quiet()

			if f.remoteWrites() != before {
				t.Errorf("Omni took %q", f.writesSince(before))
			}

			f.edit(func(o *v1alpha1.OmniCluster) {
				o.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
				o.Generation--
			})
			f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
			f.advance(settleTime + time.Second)
			f.until("Ready", metav1.ConditionTrue, "Running")
			f.quiet()
		})
	}
}

// An edit that takes a removal back ends the hold like any other.
func TestSecondWriterAfterARemovalTakenBack(t *testing.T) {
	f := running(t)
	f.war()
	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size.IntVal = 1 })
	f.until("Stalled", metav1.ConditionTrue, "SecondWriter")
	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Size.IntVal = 2 })
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()
}

// A request that was made while no process ran ends the hold, too.
func TestSecondWriterIsLeftBeforeARestart(t *testing.T) {
	f := running(t)
	f.war()
	f.edit(func(o *v1alpha1.OmniCluster) {
		o.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
		o.Generation--
	})
	f.restart()
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()
}

// A deletion that was held goes on when somebody says so.
func TestSecondWriterIsLeftInADeletion(t *testing.T) {
	f := running(t)
	f.war()
	f.delete(newCluster())
	f.until("DeletionBlocked", metav1.ConditionTrue, "SecondWriter")
	f.edit(func(o *v1alpha1.OmniCluster) {
		o.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
	})
	f.untilGone()

	if f.view().Exists {
		t.Error("the cluster was left behind")
	}
}
