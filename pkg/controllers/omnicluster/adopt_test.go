package omnicluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// handmade is a fixture with a cluster in Omni that people made: a worker set with
// one machine, and a patch. The object wants to adopt it, but for that set.
func handmade(t *testing.T, edit func(*v1alpha1.OmniCluster)) *fixture {
	t.Helper()

	cluster := newCluster()
	cluster.Spec.Adopt = true

	if edit != nil {
		edit(cluster)
	}

	f := newFixture(t, cluster)

	if err := omnisim.CreateForeignCluster(t.Context(), f.omni.State(), "demo", "1.35.1", "1.13.3"); err != nil {
		t.Fatal(err)
	}

	// Omni gives a new cluster its ID a moment later; one that is to be adopted has had it for long.
	f.eventually("the ID of the cluster", func() string {
		if _, err := safe.StateGet[*omnires.ClusterUUID](t.Context(), f.omni.State(), omnires.NewClusterUUID("demo").Metadata()); err != nil {
			return err.Error()
		}

		return ""
	})

	f.setByHand("theirs", f.machines[1])
	f.patchByHand("500-theirs")
	f.create(newControlPlane("cp", f.machines[0]), newWorkers("w", machineClass, 1))

	// A local copy that has all of that from the beginning.
	f.pool.Forget("uid-connection")
	f.connect()

	return f
}

// untilKnown reconciles until the object knows which cluster it has taken over and waits for approval of the rest.
func (f *fixture) untilKnown() *v1alpha1.OmniCluster {
	f.t.Helper()
	f.eventually("the ID of the cluster", func() string {
		if f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval").Status.OmniClusterID == "" {
			return "it is not known"
		}

		return ""
	})

	return f.get()
}

func TestAdopt(t *testing.T) {
	f := handmade(t, nil)
	cluster := f.untilKnown()
	says(t, message(cluster, "Ready"), `MachineSet "demo-theirs"`, `ConfigPatch "500-theirs"`, "the cluster is being adopted", cluster.Status.Plan.Hash)

	if !cluster.Status.Adopting || cluster.Status.OmniClusterID == "" || cluster.Status.Plan.Destroys != 2 {
		t.Errorf("%+v", cluster.Status)
	}

	if !f.hasEvent("Adopted", `"demo"`, "has no owner") {
		t.Errorf("no event of the adoption: %q", f.events.All())
	}

	view := f.view()
	if view.Annotations[v1alpha1.MarkOwnerUID] != "uid-demo" || view.Machines["demo-theirs"] != 1 || view.Machines["demo-control-planes"] != 1 || len(view.Patches) != 1 {
		t.Errorf("Omni has %+v", view)
	}

	f.advance(10 * settleTime)
	f.restart()
	f.quiet()
	f.wantTornDown()

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.ApprovedPlan = cluster.Status.Plan.Hash })
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	if cluster = f.get(); cluster.Status.Adopting || len(f.view().Patches) != 0 || len(cluster.Status.AppliedMachineSets) != 2 {
		t.Errorf("%+v, Omni has %+v", cluster.Status, f.view())
	}

	// From now on a patch made by hand is drift.
	f.patchByHand("500-later")
	f.eventually("the patch to go", func() string {
		f.run()

		return map[bool]string{true: "it is still there"}[len(f.view().Patches) > 0]
	})
	f.quiet()
}

// An adopted cluster has a group of three objects, of which the documents drop one, and later another. The approval of the
// first is none for the second, though the change waited all the time.
func TestAdoptedObjectsAreApprovedOneByOne(t *testing.T) {
	const group = "200-cluster-demo-a"

	f := handmade(t, nil)
	f.manifestsByHand(group, specs.KubernetesManifestGroupSpec_FULL)

	objects := func(names ...string) string {
		var text string
		for _, name := range names {
			text += "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n"
		}

		return text
	}

	_, err := safe.StateUpdateWithConflicts(t.Context(), f.omni.State(), omnires.NewKubernetesManifestGroup(group).Metadata(),
		func(res *omnires.KubernetesManifestGroup) error {
			return res.TypedSpec().Value.SetUncompressedData([]byte(objects("x", "y", "z")))
		})
	if err != nil {
		t.Fatal(err)
	}

	wants := func(names ...string) {
		f.edit(func(o *v1alpha1.OmniCluster) {
			manifest := v1alpha1.Manifest{Name: "a", Mode: v1alpha1.ManifestFull}
			for _, name := range names {
				manifest.Inline = append(manifest.Inline, v1alpha1.FreeForm{Raw: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + name + `"}}`)})
			}

			o.Spec.Kubernetes.Manifests = []v1alpha1.Manifest{manifest}
		})
	}

	wants("x", "y")
	f.untilKnown()

	cluster := f.get()
	says(t, message(cluster, "Ready"), `update KubernetesManifestGroup "`+group+`"`)

	hash := cluster.Status.Plan.Hash

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend, o.Spec.ApprovedPlan = true, hash })
	f.run()
	wants("x")
	f.run()
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = false })
	cluster = f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	f.quiet()

	found, err := safe.StateGetByID[*omnires.KubernetesManifestGroup](t.Context(), f.omni.State(), group)
	if err != nil {
		t.Fatal(err)
	}

	if text, err := bounds.Inflate(found.TypedSpec().Value); err != nil || text != objects("x", "y", "z") || cluster.Status.Plan.Hash == hash {
		t.Errorf("%v: Omni has %s, the hash is %q, approved was %q", err, text, cluster.Status.Plan.Hash, hash)
	}

	f.approvePlan()
	f.until("Ready", metav1.ConditionTrue, "Running")
}

// The first write is the mark, and it comes after the word in the status.
func TestAdoptWritesTheStatusFirst(t *testing.T) {
	f := handmade(t, nil)
	f.eventually("the reservation", func() string {
		f.run()

		return map[bool]string{false: "not adopting"}[f.get().Status.Adopting]
	})

	if got := f.remoteWrites(); got != 0 {
		t.Errorf("%d writes to Omni before the status", got)
	}

	f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")

	if first := f.omni.Writes()[0]; first.ID != "demo" || first.Verb != "Update" {
		t.Errorf("the first write is %+v", first)
	}
}

// Observe and suspend show the plan and write nothing, also not that anything is adopted.
func TestAdoptIsOnlyShown(t *testing.T) {
	for name, edit := range map[string]func(*v1alpha1.OmniCluster){
		"observe": func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve },
		"suspend": func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = true },
	} {
		t.Run(name, func(t *testing.T) {
			f := handmade(t, edit)
			f.eventually("the local copy to show the cluster", func() string {
				f.run()

				return map[bool]string{false: message(f.get(), "Planned")}[strings.Contains(message(f.get(), "Planned"), "is taken over (spec.adopt)")]
			})
			f.advance(10 * settleTime)
			f.quiet()

			if cluster := f.get(); cluster.Status.Adopting || cluster.Status.OmniClusterID != "" || cluster.Status.Plan.Destroys != 2 || f.remoteWrites() != 0 {
				t.Errorf("%+v, %d writes", cluster.Status, f.remoteWrites())
			}

			// Deleting lets go of what was never taken.
			f.delete(newCluster())
			f.untilGone()

			if !f.view().Exists || f.remoteWrites() != 0 {
				t.Error("the foreign cluster was touched")
			}
		})
	}
}

// A locked cluster is not taken over.
func TestAdoptLocked(t *testing.T) {
	f := handmade(t, nil)
	if err := omnisim.AnnotateCluster(t.Context(), f.omni.State(), "demo", "omni.sidero.dev/cluster-locked", ""); err != nil {
		t.Fatal(err)
	}

	f.until("Stalled", metav1.ConditionTrue, "RemoteLocked")
	f.quiet()

	if got := f.remoteWrites(); got != 0 {
		t.Errorf("%d writes to Omni", got)
	}
}

// ownedByBoss puts the mark of OmniCluster elsewhere/boss on the cluster in Omni.
func (f *fixture) ownedByBoss() {
	f.t.Helper()

	for key, value := range map[string]string{
		v1alpha1.MarkOwnerNamespace: "elsewhere", v1alpha1.MarkOwnerName: "boss", v1alpha1.MarkOwnerUID: "uid-other",
	} {
		if err := omnisim.AnnotateCluster(f.t.Context(), f.omni.State(), testCluster, key, value); err != nil {
			f.t.Fatal(err)
		}
	}

	// A local copy that has the mark from the beginning.
	f.pool.Forget("uid-connection")
	f.connect()
}

// boss is the OmniCluster to which ownedByBoss gives the cluster.
func boss(uid types.UID) *v1alpha1.OmniCluster {
	return &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "boss", UID: uid}}
}

// A copy of the objects in another namespace, with adopt from the same files, takes nothing from an object that exists, and
// its deletion destroys nothing. The cluster comes free when it is released there.
func TestAdoptTakesNothingFromALivingObject(t *testing.T) {
	for name, released := range map[string]bool{"the copy is deleted": false, "it is released there": true} {
		t.Run(name, func(t *testing.T) {
			f := handmade(t, nil)
			f.ownedByBoss()

			owner := boss("uid-other")
			owner.Finalizers = []string{v1alpha1.Finalizer}
			f.create(owner)

			before := f.remoteWrites()
			says(t, message(f.until("Stalled", metav1.ConditionTrue, "NotOwned"), "Ready"),
				"OmniCluster elsewhere/boss (UID uid-other)", "which exists", "release it there first", "spec.deletePolicy.orphan: true")
			f.delete(boss("uid-other")) // it has a finalizer: it exists until the mark is off
			f.restart()
			f.advance(time.Hour)
			f.quiet()

			if cluster := f.get(); cluster.Status.Adopting || cluster.Status.OmniClusterID != "" || f.remoteWrites() != before {
				t.Errorf("%+v, %d writes to Omni", cluster.Status, f.remoteWrites()-before)
			}

			if released {
				if err := omnisim.RemoveAnnotation(t.Context(), f.omni.State(), testCluster, v1alpha1.MarkOwnerUID); err != nil {
					t.Fatal(err)
				}

				f.untilKnown()

				return
			}

			f.delete(newCluster())
			f.untilGone()

			if view := f.view(); f.remoteWrites() != before || !view.Exists || view.Annotations[v1alpha1.MarkOwnerUID] != "uid-other" {
				t.Errorf("Omni took %q, and has %+v", f.writesSince(before), view)
			}
		})
	}
}

// After the loss of the storage the owner is made anew, with another UID, and has only looked so far. A copy in another namespace
// does not get there first.
func TestAdoptTakesNothingFromAnOwnerThatWasMadeAnew(t *testing.T) {
	sameCluster := boss("uid-anew")
	sameCluster.Spec.ClusterName = testCluster

	inAnotherOmni := sameCluster.DeepCopy()
	inAnotherOmni.Status.OmniClusterID = "another"

	for name, test := range map[string]struct {
		owner *v1alpha1.OmniCluster
		taken bool
	}{
		"for the same cluster": {sameCluster, false},
		"for another cluster":  {boss("uid-anew"), true},
		"in another Omni":      {inAnotherOmni, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := handmade(t, nil)
			f.ownedByBoss()
			f.create(test.owner)

			if test.taken {
				f.untilKnown()

				return
			}

			before := f.remoteWrites()
			says(t, message(f.until("Stalled", metav1.ConditionTrue, "NotOwned"), "Ready"),
				"OmniCluster elsewhere/boss (UID uid-other)", "which was made anew there", "release it there first")
			f.advance(time.Hour)
			f.quiet()

			if f.remoteWrites() != before {
				t.Errorf("%d writes to Omni", f.remoteWrites()-before)
			}

			f.delete(test.owner)
			f.untilKnown()
		})
	}
}

// What does not show that the owner is gone is no proof of it: a cache that lacks it, or an API that does not tell.
func TestAdoptAsksTheAPIForTheOwner(t *testing.T) {
	forbidden := apierrors.NewForbidden(v1alpha1.Resource("omniclusters"), "boss", errors.New("no rights there"))

	for name, test := range map[string]struct {
		answer error
		says   string
	}{
		"the cache lacks it":      {nil, "which exists"},
		"it may not be read":      {forbidden, "whether it exists cannot be seen from here"},
		"the API does not answer": {errors.New("connection refused"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := handmade(t, nil)
			f.ownedByBoss()
			f.create(boss("uid-other"))

			reads := func(answer error) client.WithWatch {
				return interceptor.NewClient(f.client, interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
						if key.Name == "boss" && answer != nil {
							return answer
						}

						return c.Get(ctx, key, o, opts...)
					},
				})
			}
			f.reconciler.client = reads(apierrors.NewNotFound(v1alpha1.Resource("omniclusters"), "boss"))
			f.reconciler.live = reads(test.answer)
			before := f.remoteWrites()

			if test.says != "" {
				says(t, message(f.until("Stalled", metav1.ConditionTrue, "NotOwned"), "Ready"), test.says)
			}

			for range 3 {
				f.run()
			}

			if cluster := f.get(); cluster.Status.Adopting || f.remoteWrites() != before {
				t.Errorf("%+v, %d writes to Omni", cluster.Status, f.remoteWrites()-before)
			}
		})
	}
}

// A cluster of an object that is gone can be taken, also if another has its name now; what lost it does not take it back.
func TestAdoptFromAnObjectThatIsGone(t *testing.T) {
	f := handmade(t, nil)
	f.ownedByBoss()
	f.create(boss("uid-later"))

	f.untilKnown()

	if !f.hasEvent("Adopted", "from OmniCluster elsewhere/boss (UID uid-other)") {
		t.Errorf("no event of whose it was: %q", f.events.All())
	}

	// The other takes it: adopt is not honoured twice.
	if err := omnisim.AnnotateCluster(t.Context(), f.omni.State(), "demo", v1alpha1.MarkOwnerUID, "uid-other"); err != nil {
		t.Fatal(err)
	}

	writes := f.remoteWrites()

	f.until("Stalled", metav1.ConditionTrue, "OwnershipLost")
	f.restart()
	f.quiet()

	if got := f.remoteWrites(); got != writes {
		t.Errorf("%d more writes to Omni", got-writes)
	}
}

// The process dies at every write of the status in turn, and once more at each
// of those after it: nothing is ever destroyed that nobody approved.
func TestAdoptSurvivesCrashes(t *testing.T) {
	for fails := range 4 {
		f := handmade(t, nil)
		patches := 0
		dying := interceptor.NewClient(f.client, interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if patches++; patches > fails && patches <= fails+3 {
					return errors.New("the process died")
				}

				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		})

		f.eventually("the approval to be waited for", func() string {
			f.restart()
			f.loop = loop.New(f.reconciler.kind(), loop.Settings{Client: dying, Events: f.events})
			f.run()
			f.advance(settleTime)

			if got := f.get().Status; !got.Adopting || got.OmniClusterID == "" || patches < fails+3 && fails < 2 {
				return message(f.get(), "Ready")
			}

			return ""
		})

		f.restart()
		f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
		f.advance(10 * settleTime)
		f.quiet()
		f.wantTornDown()

		if view := f.view(); view.Machines["demo-theirs"] != 1 || len(view.Patches) != 1 {
			t.Errorf("after %d: Omni has %+v", fails, view)
		}
	}
}

// The status was wiped in the middle of an adoption.
func TestAdoptWithAWipedStatus(t *testing.T) {
	f := handmade(t, nil)
	f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")

	cluster := f.get()
	cluster.Status = v1alpha1.OmniClusterStatus{}

	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	// Not even a run that cannot plan makes it forget.
	f.delete(newControlPlane("cp", f.machines[0]))
	f.restart()
	f.until("Assembled", metav1.ConditionFalse, "ControlPlaneMissing")
	f.create(newControlPlane("cp", f.machines[0]))
	cluster = f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	f.advance(10 * settleTime)
	f.quiet()
	f.wantTornDown()

	if !cluster.Status.Adopting || len(f.view().Patches) != 1 {
		t.Errorf("%+v, Omni has %+v", cluster.Status, f.view())
	}
}

// Somebody made a cluster of the same name in the place of ours, with our mark.
func TestReplacedCluster(t *testing.T) {
	f := running(t)
	known := f.get().Status.OmniClusterID

	cluster := f.get()
	cluster.Status.OmniClusterID = "00000000-0000-0000-0000-00000000000a"

	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	f.delete(newWorkers("w", machineClass, 2))

	writes := f.remoteWrites()
	says(t, message(f.until("Stalled", metav1.ConditionTrue, "RemoteClusterReplaced"), "Ready"),
		known, "omni.texashpc.com/recreate: 00000000-0000-0000-0000-00000000000a")
	f.advance(10 * settleTime)
	f.quiet()

	if got := f.get().Status.OmniClusterID; got != "00000000-0000-0000-0000-00000000000a" || f.remoteWrites() != writes {
		t.Errorf("ID %s, %d writes to Omni", got, f.remoteWrites()-writes)
	}

	// Allowed: it is ours then, but nobody asked for what is in it to go.
	f.edit(func(o *v1alpha1.OmniCluster) {
		o.Annotations = map[string]string{v1alpha1.AnnotationRecreate: "00000000-0000-0000-0000-00000000000a"}
	})
	f.until("Stalled", metav1.ConditionTrue, "AwaitingApproval")
	f.quiet()
	f.wantTornDown()

	if got := f.get().Status.OmniClusterID; got != known {
		t.Errorf("ID %s", got)
	}
}

func TestReplacedClusterThenDeleted(t *testing.T) {
	f := running(t)
	cluster := f.get()
	cluster.Status.OmniClusterID = "gone"

	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	f.delete(newCluster())
	says(t, message(f.until("DeletionBlocked", metav1.ConditionTrue, "RemoteClusterReplaced"), "DeletionBlocked"), "recreate: gone", "spec.deletePolicy.orphan")
	f.advance(time.Hour)
	f.quiet()
	f.wantTornDown()

	f.edit(func(o *v1alpha1.OmniCluster) { o.Annotations = map[string]string{v1alpha1.AnnotationRecreate: "gone"} })
	f.untilGone()

	if f.view().Exists {
		t.Error("the cluster is still there")
	}
}

// An Omni that lacks the cluster for a moment, because it was restored or is another one, ends no adoption.
func TestAdoptionOutlastsAnAbsence(t *testing.T) {
	known, unknown := consent.Claim{KnownID: "id-1"}, consent.Claim{}
	back := known
	back.Live = omni.Live{Exists: true, UUID: "id-1"}

	for name, test := range map[string]struct {
		claim consent.Claim
		plan  *plan.Plan
		want  bool
	}{
		"it is gone":                {known, nil, true},
		"it is back":                {back, nil, true},
		"it never had an ID":        {unknown, nil, false},
		"back, and nothing is left": {back, &plan.Plan{}, false},
	} {
		cluster := newCluster()
		cluster.Status.Adopting = true

		s := &scope{cluster: cluster, seen: &seen{}, plan: test.plan}
		if reportAdoption(s, test.claim); cluster.Status.Adopting != test.want {
			t.Errorf("%s: adopting is %v", name, cluster.Status.Adopting)
		}
	}
}
