package migrate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// The report of an observed cluster has the command that takes it over, with the deletion policy of the old object.
func TestTakeoverByHand(t *testing.T) {
	for policy, want := range map[string]string{
		"": `{"spec":{"changePolicy":"Apply","deletePolicy":{"orphan":false,"destroyMachines":false}}}`,
		", deletePolicy: {destroyMachines: true}": `{"spec":{"changePolicy":"Apply","deletePolicy":{"orphan":false,"destroyMachines":true}}}`,
		", deletePolicy: {orphan: true}":          `{"spec":{"changePolicy":"Apply","deletePolicy":{"orphan":true,"destroyMachines":false}}}`,
		", ofAnotherVersion: 1":                   `{"spec":{"changePolicy":"Apply"}}`,
	} {
		report := &Report{}
		report.add(Convert(stored(t, "OmniCluster", "", cluster+policy+"}")), verdict{over: true, outcome: Observed})

		var out strings.Builder
		if err := report.Print(&out); err != nil || !strings.Contains(out.String(), "kubectl patch omnicluster one -n team-a --type=merge -p '"+want+"'\n") {
			t.Errorf("%s: %v\n%s", policy, err, &out)
		}
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
