package omnicluster

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

// untilReadySays reconciles until Ready is False because of manifests, with all parts of a message.
func (f *fixture) untilReadySays(parts ...string) *v1alpha1.OmniCluster {
	f.t.Helper()

	var cluster *v1alpha1.OmniCluster

	f.eventually("Ready to say "+strings.Join(parts, ", "), func() string {
		f.run()

		cluster = f.get()
		found := strings.Join(shown(cluster), "\n")

		for _, part := range append(parts, "Ready=False ManifestsNotApplied: ", "Available=False ManifestsNotApplied: ", "Reconciling=True ManifestsNotApplied: ") {
			if !strings.Contains(found, part) {
				return found
			}
		}

		return ""
	})

	return cluster
}

// keepsQuiet checks that a text is nowhere in the object or its events.
func (f *fixture) keepsQuiet(about string) {
	f.t.Helper()

	object, err := json.Marshal(f.get())
	if err != nil {
		f.t.Fatal(err)
	}

	if all := string(object) + strings.Join(f.events.All(), "\n"); strings.Contains(all, about) {
		f.t.Errorf("it shows %q: %s", about, all)
	}
}

// mends puts another object into the group of the only manifest, of a kind that the cluster knows.
func (f *fixture) mends() {
	f.t.Helper()
	f.edit(func(o *v1alpha1.OmniCluster) {
		o.Spec.Kubernetes.Manifests[0].Inline = []v1alpha1.FreeForm{
			{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"good","namespace":"default"}}`)},
		}
	})
}

// Omni may take manifests that the cluster refuses. Whoever looks finds which object it is, and where the error is: it may quote
// the object, with what came from a Secret.
func TestReadyNamesManifestsThatTheClusterRefuses(t *testing.T) {
	f := running(t)
	const said = "failed calling webhook: canary"

	f.omni.RefuseManifests(testCluster, said)
	f.wants(v1alpha1.ManifestFull, "apps", "more")
	cluster := f.untilReadySays("2 of 2 Kubernetes manifests are not in effect; not applied: Namespace apps (and 1 more); ",
		"`omnictl get clusterkubernetesmanifestsstatus demo -o yaml` has Omni's error")

	// Omni has what the objects say, and goes on trying.
	if !apimeta.IsStatusConditionTrue(cluster.Status.Conditions, "Synced") || apimeta.IsStatusConditionTrue(cluster.Status.Conditions, "Stalled") {
		t.Errorf("%q", shown(cluster))
	}

	f.quiet()
	f.keepsQuiet(said)

	f.omni.RefuseManifests(testCluster, "")
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	// Another version of an object that the cluster has: nothing is out of sync, and there is an error.
	f.omni.RefuseManifests(testCluster, said)
	f.untilReadySays("Omni cannot apply the Kubernetes manifests of the cluster; `omnictl get ")
	f.keepsQuiet(said)
}

// An object of a kind that the cluster does not know is no error for Omni: it waits.
func TestReadyNamesManifestsOfAnUnknownKind(t *testing.T) {
	f := running(t)

	f.omni.SetKindUnknown(testCluster, "Namespace", true)
	f.wants(v1alpha1.ManifestFull, "apps")
	f.untilReadySays("1 of 1 Kubernetes manifests are not in effect; not applied: Namespace apps; ", "its CustomResourceDefinition is missing")
	f.quiet()
	f.omni.SetKindUnknown(testCluster, "Namespace", false)
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()
}

// Omni has no status of the manifests of a cluster without any, and that is well.
func TestClusterWithoutManifestsIsReady(t *testing.T) {
	f := running(t)

	if _, err := f.omni.State().Get(t.Context(), omni.NewClusterKubernetesManifestsStatus(testCluster).Metadata()); err == nil {
		t.Error("this test wants a cluster without a status")
	}
}

// Whole manifests may come from a Secret. Then the name of an object does, too.
func TestReadyHidesNamesFromSecrets(t *testing.T) {
	f := running(t)
	const canary = "c4n4ry-0f-4-s3cr3t"

	f.create(&corev1.Secret{
		ObjectMeta: meta("secret", ""),
		Data:       map[string][]byte{"manifests": []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + canary + "}\n")},
	})
	f.omni.RefuseManifests(testCluster, "no")
	f.edit(func(o *v1alpha1.OmniCluster) {
		o.Spec.Kubernetes.Manifests = []v1alpha1.Manifest{{
			Name: "a", Mode: v1alpha1.ManifestFull, ValueFrom: &v1alpha1.ValueSource{SecretKeyRef: &v1alpha1.KeyReference{Name: "secret", Key: "manifests"}},
		}}
	})
	f.untilReadySays("1 of 1 Kubernetes manifests are not in effect; not applied: ", "`omnictl get clusterkubernetesmanifestsstatus demo -o yaml` has")
	f.keepsQuiet(canary)
	f.quiet()
}

// While Kubernetes does not work in a new cluster, no object can be there: the cluster waits for Kubernetes.
func TestNewClusterWaitsForKubernetesBeforeItsManifests(t *testing.T) {
	f := newFixture(t, newCluster())
	f.wants(v1alpha1.ManifestFull, "apps")
	f.create(newControlPlane("cp", f.machines[0]))

	f.eventually("Ready", func() string {
		f.run()

		cluster := f.get()
		if ready := apimeta.FindStatusCondition(cluster.Status.Conditions, "Ready"); ready.Reason == v1alpha1.ReasonManifestsNotApplied && cluster.Status.Starting {
			t.Fatalf("%q", shown(cluster))
		}

		if isReady(cluster) {
			return ""
		}

		return strings.Join(shown(cluster), "\n")
	})
}

// beginTurnOfUnknownKind begins a turn with a manifest whose kind the cluster does not know.
func (f *fixture) beginTurnOfUnknownKind(namespace string) {
	f.t.Helper()

	f.omni.SetKindUnknown(testCluster, "Namespace", true)
	f.wants(v1alpha1.ManifestFull, namespace)
	f.until(v1alpha1.ConditionHeld, metav1.ConditionTrue, "")
	f.admit()
	f.untilReadySays("Namespace " + namespace)
}

// A turn is not over while Omni has not applied the manifests, however well the machines run.
func TestTurnLastsUntilManifestsAreApplied(t *testing.T) {
	f := governed(t)
	f.beginTurnOfUnknownKind("apps")

	for range 5 {
		f.advance(readyTime)
		f.run()
	}

	if turn := f.turn(); turn.State != v1alpha1.RolloutAdmitted || turn.Last != nil || turn.WellSince != nil {
		t.Fatalf("while a manifest waits: %s, %+v, well since %s", turn.State, turn.Last, turn.WellSince)
	}

	f.omni.SetKindUnknown(testCluster, "Namespace", false)

	if turn := f.untilTurnEnds(nil); turn.Last.Result != v1alpha1.RolloutDone || turn.Failure != nil {
		t.Errorf("%+v, %+v", turn.Last, turn.Failure)
	}

	f.until(v1alpha1.ConditionReady, metav1.ConditionTrue, "Running")
}

// A turn whose manifests are not applied in time has failed. The fix may begin although the cluster is not Ready.
func TestFixOfManifestsWhoseTurnFailed(t *testing.T) {
	f := governed(t)
	f.beginTurnOfUnknownKind("bad")
	f.advance(3 * time.Hour)

	turn := f.untilTurnEnds(nil)
	if turn.Last.Result != v1alpha1.RolloutUnsuccessful || turn.Failure == nil {
		t.Fatalf("%+v, %+v", turn.Last, turn.Failure)
	}

	f.mends()
	f.until(v1alpha1.ConditionHeld, metav1.ConditionTrue, "")
	f.admit()
	f.until(v1alpha1.ConditionReady, metav1.ConditionTrue, "Running")

	if turn = f.untilTurnEnds(turn.Last); turn.Last.Result != v1alpha1.RolloutDone || turn.Failure != nil {
		t.Errorf("%+v, %+v", turn.Last, turn.Failure)
	}
}

// Manifests that were not applied before a policy selected the cluster: their fix waits until somebody overrides it, as the message
// says.
func TestFixOfManifestsBesideAPolicy(t *testing.T) {
	f := running(t)
	f.omni.SetKindUnknown(testCluster, "Namespace", true)
	f.wants(v1alpha1.ManifestFull, "bad")
	f.untilReadySays("Namespace bad")
	f.govern()
	f.mends()
	says(t, message(f.until(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonClusterNotReady), v1alpha1.ConditionHeld), "kubectl omni override demo")
	f.admit() // a ticket alone does not help
	f.run()
	f.until(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonClusterNotReady)

	hash := f.turn().Hash
	f.reconciler.options.Overrides = metrics.NewRollouts()
	f.edit(func(o *v1alpha1.OmniCluster) {
		o.Annotations = map[string]string{v1alpha1.AnnotationRolloutOverride: hash + " the manifest is wrong"}
	})

	cluster := f.get()
	cluster.Status.Rollout.Override = &v1alpha1.RolloutOverride{Hash: hash, Reason: "the manifest is wrong", User: "alice"} // the API server writes it

	if err := f.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	f.until(v1alpha1.ConditionReady, metav1.ConditionTrue, "Running")
}

// Ready tells of one thing only. While that is a change that settles, another may not begin in a cluster whose manifests
// are not applied.
func TestManifestsNotAppliedWhileAChangeSettles(t *testing.T) {
	f := running(t)
	f.omni.SetKindUnknown(testCluster, "Namespace", true)
	f.wants(v1alpha1.ManifestFull, "bad")
	f.untilReadySays("Namespace bad")
	f.govern(v1alpha1.ChangeTalosVersion, v1alpha1.ChangeKubernetesVersion)
	f.reconciler.options.Well = hubs.NewWell(trigger.Pacing{})
	f.delete(newWorkers("w", machineClass, 2))
	f.until(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingToSettle)

	f.edit(func(cluster *v1alpha1.OmniCluster) { cluster.Spec.Kubernetes.Version = "v1.36.1" })
	f.until(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonClusterNotReady)
	f.admit()

	for range 3 {
		f.run()
	}

	if turn := f.turn(); turn.State != v1alpha1.RolloutHeld {
		t.Errorf("%+v", turn)
	}
}

// A new cluster that was never Ready needs no turn for what it lacks.
func TestFixOfManifestsOfANewCluster(t *testing.T) {
	f := newUnderPolicy(t, machineClass)
	f.omni.SetKindUnknown(testCluster, "Namespace", true)
	f.wants(v1alpha1.ManifestFull, "bad")
	f.untilReadySays("Namespace bad")
	f.quiet()
	f.wants(v1alpha1.ManifestFull)
	f.until("Synced", metav1.ConditionFalse, v1alpha1.ReasonWaitingToSettle)
	f.advance(settleTime)
	f.until(v1alpha1.ConditionReady, metav1.ConditionTrue, "Running")
}
