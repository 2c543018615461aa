package migrate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// TestDeletionPolicyAfterTheTakeover: a cluster that its user has taken over gets the old deletion policy, unless somebody
// has written the policy since. How its changes are made stays as its user wants it.
func TestDeletionPolicyAfterTheTakeover(t *testing.T) {
	const ours, user = fieldManager, "kubectl-edit"

	for name, test := range map[string]struct {
		live    map[string]any
		writers map[string]string
		want    map[string]any
	}{
		"ours": {
			map[string]any{"orphan": true, "destroyMachines": false}, map[string]string{ours: `{"f:deletePolicy":{"f:orphan":{},"f:destroyMachines":{}}}`},
			map[string]any{"orphan": false, "destroyMachines": true},
		},
		"its user keeps the cluster": {
			map[string]any{"orphan": true, "destroyMachines": true},
			map[string]string{ours: `{"f:deletePolicy":{"f:destroyMachines":{}}}`, user: `{"f:deletePolicy":{"f:orphan":{}}}`},
			map[string]any{"orphan": true, "destroyMachines": true},
		},
		"its user keeps the cluster, as we do": {
			map[string]any{"orphan": true, "destroyMachines": false},
			map[string]string{ours: `{"f:deletePolicy":{"f:orphan":{},"f:destroyMachines":{}}}`, user: `{"f:deletePolicy":{"f:orphan":{}}}`},
			map[string]any{"orphan": true, "destroyMachines": false},
		},
		"its user keeps the machines": {
			map[string]any{"orphan": true, "destroyMachines": false},
			map[string]string{ours: `{"f:deletePolicy":{"f:orphan":{}}}`, user: `{"f:deletePolicy":{"f:destroyMachines":{}}}`},
			map[string]any{"orphan": false, "destroyMachines": false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := policed("OmniCluster", test.live, test.writers)
			obj.SetAPIVersion("omni.texashpc.com/v1alpha1")
			obj.SetNamespace("team-a")

			if err := unstructured.SetNestedField(obj.Object, "ConfirmDestructive", "spec", "changePolicy"); err != nil {
				t.Fatal(err)
			}

			m := migrationOn(fakeHub(&obj))
			wanted := &v1alpha1.OmniCluster{Spec: v1alpha1.OmniClusterSpec{DeletePolicy: v1alpha1.OmniClusterDeletePolicy{DestroyMachines: true}}}
			converted := &Converted{Kind: "OmniCluster", Namespace: "team-a", Name: "one", Object: wanted}
			live := &v1alpha1.OmniCluster{Status: v1alpha1.OmniClusterStatus{ReconcileStatus: v1alpha1.ReconcileStatus{Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionSynced, Status: metav1.ConditionTrue},
			}}}}
			live.Spec.DeletePolicy.Orphan = true

			if _, err := m.verifyTakeover(t.Context(), converted, &obj, live); err != nil {
				t.Fatal(err)
			}

			of, _ := kindNamed("OmniCluster")

			got, err := m.hub.get(t.Context(), of.resource(), "team-a", "one")
			if err != nil {
				t.Fatal(err)
			}

			want := map[string]any{"changePolicy": "ConfirmDestructive", "deletePolicy": test.want}
			if diff := cmp.Diff(want, got.Object["spec"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A cluster that its user took over while it was suspended gets its deletion policy, too: the run gives up its ownership of
// the fields of a suspended cluster, and a later one could not tell the policy from that of the user.
func TestDeletionPolicyWhileSuspended(t *testing.T) {
	for name, wantedOrphan := range map[string]bool{"it had no orphan": false, "it had orphan": true} {
		t.Run(name, func(t *testing.T) {
			obj := policed("OmniCluster", map[string]any{"orphan": true, "destroyMachines": false},
				map[string]string{fieldManager: `{"f:deletePolicy":{"f:orphan":{},"f:destroyMachines":{}}}`, "kubectl-edit": `{"f:changePolicy":{},"f:suspend":{}}`})
			obj.SetAPIVersion("omni.texashpc.com/v1alpha1")
			obj.SetNamespace("team-a")

			spec, _ := obj.Object["spec"].(map[string]any)
			spec["changePolicy"], spec["suspend"] = "Apply", true

			m := migrationOn(fakeHub(&obj))
			wanted := &v1alpha1.OmniCluster{Spec: v1alpha1.OmniClusterSpec{DeletePolicy: v1alpha1.OmniClusterDeletePolicy{Orphan: wantedOrphan, DestroyMachines: true}}}
			converted := &Converted{Kind: "OmniCluster", Namespace: "team-a", Name: "one", Object: wanted}
			of, _ := kindNamed("OmniCluster")
			hub := m.hub.objects.Resource(of.resource()).Namespace("team-a")

			// verify looks until there is a verdict, and lets go.
			verify := func() verdict {
				t.Helper()

				m.report = &Report{}

				for range 5 {
					v, err := (&verification{m, nil, "token"}).verifyCluster(t.Context(), converted)
					if err != nil {
						t.Fatal(err)
					}

					if !v.over {
						continue
					}

					m.report.add(converted, v)

					if err := m.letGo(t.Context(), converted); err != nil {
						t.Fatal(err)
					}

					return v
				}

				t.Fatal("there is no verdict")

				return verdict{}
			}

			if v := verify(); v.outcome != Suspended {
				t.Fatalf("%+v", v)
			}

			live, err := hub.Get(t.Context(), "one", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}

			unstructured.RemoveNestedField(live.Object, "spec", "suspend")
			live.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": v1alpha1.ConditionSynced, "status": "True"}}}

			if _, err := hub.Update(t.Context(), live, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}

			if v := verify(); v.outcome != TakenOver {
				t.Fatalf("%+v", v)
			}

			got, err := hub.Get(t.Context(), "one", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}

			if orphan, _, _ := unstructured.NestedBool(got.Object, "spec", "deletePolicy", "orphan"); orphan != wantedOrphan {
				t.Errorf("orphan: %t", orphan)
			}
		})
	}
}

// A cluster that Git or its user observes, too, is not taken over, whatever its plan says: server-side apply of the same value
// makes an owner beside us.
func TestObservedByOthersToo(t *testing.T) {
	for name, test := range map[string]struct {
		writers []string
		took    bool
	}{
		"ours":          {[]string{fieldManager}, true},
		"Git's, too":    {[]string{fieldManager, "kustomize-controller"}, false},
		"somebody's":    {[]string{"kubectl-edit"}, false},
		"nobody's":      {nil, false},
		"other's first": {[]string{"argocd-controller", fieldManager}, false},
	} {
		obj := stored(t, "OmniCluster", "", cluster+", changePolicy: Observe}")
		obj.SetAnnotations(map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "token"})
		obj.Object["status"] = map[string]any{"lastHandledReconcileAt": "token", "conditions": []any{
			map[string]any{"type": v1alpha1.ConditionPlanned, "status": "True", "observedGeneration": int64(3)},
		}}
		writtenBy(obj, "changePolicy", test.writers...)

		objects := fakeHub(obj)
		m := migrationOn(objects, stored(t, "OmniCluster", "", cluster+"}"))
		all := m.converted()

		v, err := (&verification{m, all, "token"}).verifyCluster(t.Context(), all[0])
		if err != nil {
			t.Fatal(err)
		}

		if took := writes(objects, "changePolicy"); took != test.took || took == v.over || v.over && v.outcome != Observed {
			t.Errorf("%s: taken over: %t, %+v", name, took, v)
		}
	}
}

// TestWasReady: this command has written the policy of an object that was Ready, and nobody has looked at it since.
func TestWasReady(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		want   bool
	}{
		"it was":        {"True", true},
		"it was not":    {"False", false},
		"nobody looked": {"", false},
	} {
		old := unstructured.Unstructured{Object: map[string]any{}}
		old.SetName("app")
		old.SetKind("OmniHelmRelease")
		old.SetGeneration(2)

		if test.status != "" {
			old.Object["status"] = map[string]any{"conditions": []any{
				map[string]any{"type": "Stalled", "status": "True"},
				map[string]any{"type": "Ready", "status": test.status, "observedGeneration": int64(1)},
			}}
		}

		m := &Migration{backup: &backup{Objects: []unstructured.Unstructured{old}}}
		if got := m.wasReady(&Converted{Kind: "OmniHelmRelease", Name: "app"}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}

		if status, _ := readyOf(&old); status != "" {
			t.Errorf("%s: the newest generation is %q", name, status)
		}
	}
}
