package consent

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

func TestJudgeControlPlane(t *testing.T) {
	const allowed = "control-plane@2026-11-27T12:00:00Z"

	seen := func(backup string) *v1alpha1.ControlPlaneSet {
		return &v1alpha1.ControlPlaneSet{Created: metav1.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC), Backup: backup}
	}
	makes := func(backup string) plan.Plan { return plan.Plan{MakesControlPlane: true, Backup: backup} }

	for name, test := range map[string]struct {
		lost     *v1alpha1.ControlPlaneSet
		plan     plan.Plan
		spec     v1alpha1.OmniClusterSpec
		live     string // the cluster's ID in Omni
		recreate string
		older    bool   // the document is older than the control plane
		says     string // nothing: it goes on
	}{
		"it is there":                            {lost: seen("")},
		"the first one":                          {plan: makes("")},
		"the first one, from a backup":           {plan: makes("id/a")},
		"gone":                                   {lost: seen(""), plan: makes(""), says: "with an empty etcd"},
		"gone, and a backup is asked for":        {lost: seen(""), plan: makes("id/a")},
		"gone, and made from that backup before": {lost: seen("id/a"), plan: makes("id/a"), says: `from backup "id/a", without`},
		"gone, and another backup is asked for":  {lost: seen("id/a"), plan: makes("id/b")},
		"gone, restored in Omni from another backup than the document names": {lost: seen("id/b"), plan: makes("id/a"), older: true, says: `from backup "id/a", without`},
		"gone, made empty in Omni, and the document names a backup":          {lost: seen(""), plan: makes("id/a"), older: true, says: `from backup "id/a", without`},
		"gone, and no backup is asked for":                                   {lost: seen("id/a"), plan: makes(""), says: "with an empty etcd"},
		"gone, allowed":                                                      {lost: seen(""), plan: makes(""), recreate: allowed},
		"gone, the same backup, allowed":                                     {lost: seen("id/a"), plan: makes("id/a"), recreate: allowed},
		"gone, an earlier one was allowed":                                   {lost: seen(""), plan: makes(""), recreate: "control-plane@2026-11-26T12:00:00Z", says: allowed},
		"gone, another cluster was allowed":                                  {lost: seen(""), plan: makes(""), recreate: "id", says: allowed},
		"gone, suspended":                                                    {lost: seen(""), plan: makes(""), spec: v1alpha1.OmniClusterSpec{Suspend: true}},
		"gone, only observed":                                                {lost: seen(""), plan: makes(""), spec: v1alpha1.OmniClusterSpec{ChangePolicy: v1alpha1.ChangePolicyObserve}},
		"gone, every destroy has to be confirmed":                            {lost: seen(""), plan: makes(""), spec: v1alpha1.OmniClusterSpec{ChangePolicy: v1alpha1.ChangePolicyConfirmDestructive}, says: allowed},
		"another cluster in its place":                                       {lost: seen(""), plan: makes(""), live: "other"},
		"a new cluster whose ID is not known yet":                            {lost: seen(""), plan: makes(""), live: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &v1alpha1.OmniCluster{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo"}, Spec: test.spec, Status: v1alpha1.OmniClusterStatus{ControlPlaneSet: test.lost},
			}
			claim := Claim{Name: "demo-1", KnownID: "id", Recreate: test.recreate, Live: omni.Live{Exists: true, UUID: "id"}}

			switch test.live {
			case "":
			case "none":
				claim.Live.UUID = ""
			default:
				claim.Live.UUID = test.live
			}

			document := &v1alpha1.OmniControlPlane{}
			document.CreationTimestamp = metav1.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)

			if test.older {
				document.CreationTimestamp = metav1.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			}

			got := JudgeControlPlane(cluster, document, claim, &test.plan)
			if got.Continues() != (test.says == "") {
				t.Fatalf("%+v", got)
			}

			if test.says == "" {
				return
			}

			if !got.Stalls() || got.Reason() != v1alpha1.ReasonControlPlaneGone {
				t.Errorf("%+v", got)
			}

			for _, text := range []string{
				test.says, `MachineSet "demo-1-control-planes"`, "spec.bootstrapSpec",
				"kubectl annotate omnicluster demo -n team --field-manager=by-hand --overwrite omni.texashpc.com/recreate=" + allowed,
			} {
				if !strings.Contains(got.Message(), text) {
					t.Errorf("it does not say %q: %s", text, got.Message())
				}
			}
		})
	}
}
