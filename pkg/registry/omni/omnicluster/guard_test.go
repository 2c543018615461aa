package omnicluster

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func TestConfirmDeletion(t *testing.T) {
	yes, no := true, false

	tests := []struct {
		name      string
		required  *bool
		byDefault bool
		confirmed string
		allowed   bool
	}{
		{name: "not asked for", allowed: true},
		{name: "asked for", required: &yes},
		{name: "asked for by the server", byDefault: true},
		{name: "asked for by the server, not wanted here", required: &no, byDefault: true, allowed: true},
		{name: "confirmed", required: &yes, confirmed: "production", allowed: true},
		{name: "confirmed for the server", byDefault: true, confirmed: "production", allowed: true},
		{name: "confirmed with another name", required: &yes, confirmed: "staging"},
		{name: "confirmed with a yes", required: &yes, confirmed: "true"},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cluster := valid()
			cluster.Name = "production"
			cluster.Spec.DeletePolicy.RequireConfirmation = test.required

			if test.confirmed != "" {
				cluster.Annotations = map[string]string{"omni.texashpc.com/confirm-deletion": test.confirmed}
			}

			err := confirmDeletion(cluster, test.byDefault)
			if test.allowed {
				if err != nil {
					t.Errorf("refused: %v", err)
				}

				return
			}

			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "omni.texashpc.com/confirm-deletion=production") {
				t.Errorf("got %v, want Forbidden with the annotation to set", err)
			}
		})
	}
}

func TestCellsCountOnlyTheirSets(t *testing.T) {
	cluster := &v1alpha1.OmniCluster{Status: v1alpha1.OmniClusterStatus{Omni: &v1alpha1.OmniClusterRemoteStatus{}}}
	if got := machines(cluster, isWorkerSet); got != "0/0" {
		t.Errorf("no sets: %q, want 0/0", got)
	}

	cluster.Status.Omni = sets()
	if got := machines(cluster, isControlPlane); got != "2/3" {
		t.Errorf("control plane: %q, want 2/3", got)
	}
}

func TestDeletionOf(t *testing.T) {
	known := func(o *v1alpha1.OmniCluster) {
		o.Status.Omni = &v1alpha1.OmniClusterRemoteStatus{MachineSets: []v1alpha1.MachineSetStatus{
			{Name: "control-planes", Machines: v1alpha1.MachineCounts{Total: 3}}, {Name: "w", Machines: v1alpha1.MachineCounts{Total: 2}},
		}}
	}

	for name, test := range map[string]struct {
		change func(*v1alpha1.OmniCluster)
		want   string
	}{
		"not seen in Omni": {func(*v1alpha1.OmniCluster) {}, `destroys cluster "production" in Omni, if this object made or adopted it`},
		"with machines":    {known, `destroys cluster "production" in Omni and wipes 5 machines`},
		"orphaned":         {func(o *v1alpha1.OmniCluster) { known(o); o.Spec.DeletePolicy.Orphan = true }, ""},
		"observed":         {func(o *v1alpha1.OmniCluster) { known(o); o.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve }, ""},
	} {
		cluster := valid()
		test.change(cluster)

		if got := deletionOf(cluster); got.Does != test.want || test.want != "" && !strings.Contains(got.Keep, "spec.deletePolicy.orphan: true") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
