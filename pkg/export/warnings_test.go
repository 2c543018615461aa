package export

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// bare are the objects of a cluster without any content.
func bare() *Objects {
	return &Objects{Cluster: &v1alpha1.OmniCluster{}, ControlPlane: &v1alpha1.OmniControlPlane{}}
}

func TestWarnings(t *testing.T) {
	const kind = ".omni.sidero.dev"

	for name, test := range map[string]struct {
		exported      observe.Exported
		inexpressible []plan.Change
		want          []string
	}{
		"nothing to say": {},
		"owned": {
			exported: observe.Exported{Live: omni.Live{Marks: omni.Marks{UID: "uid-1", Namespace: "prod", Name: "edge"}}},
			want: []string{`cluster "c": it belongs to the OmniCluster prod/edge (UID uid-1): as long as that exists the manifests change nothing; release the cluster there first ` +
				`(spec.deletePolicy.orphan: true, then delete it)`},
		},
		"locked": {
			exported: observe.Exported{Live: omni.Live{Locked: true}},
			want:     []string{`cluster "c": it is locked in Omni: the operator changes nothing until somebody unlocks it there`},
		},
		"kernel arguments": {
			exported: observe.Exported{Unmanaged: []string{"m1", "m2"}},
			want:     []string{`cluster "c": kernel arguments of m1, m2 are set in Omni beside every template: they are not in the manifests, and stay as they are`},
		},
		"disabled patches": {
			exported: observe.Exported{Disabled: []string{"500-c-a"}},
			want: []string{`cluster "c": the patches 500-c-a are disabled in Omni, which no document can express: they stay disabled where Omni has them, ` +
				`and are in effect in a new cluster`},
		},
		"gaps": {
			inexpressible: []plan.Change{
				{Action: plan.ActionDestroy, Type: "ConfigPatches" + kind, ID: "500-by-hand"},
				{Action: plan.ActionCreate, Type: "KubernetesManifestGroups" + kind, ID: "c-a"},
				{Action: plan.ActionUpdate, Type: "KubernetesHealthChecks" + kind, ID: "check"},
				{Action: plan.ActionUpdate, Type: "MachineSets" + kind, ID: "c-w", OldSize: "3", NewSize: "2"},
			},
			want: []string{
				`cluster "c": applying the manifests would destroy ConfigPatch "500-by-hand": no document can express it; while a cluster is being adopted nothing is destroyed without spec.approvedPlan`,
				`cluster "c": applying the manifests would create KubernetesManifestGroup "c-a": Omni has it under another ID or not at all`,
				`cluster "c": applying the manifests would update KubernetesHealthCheck "check": its job is written in another format, with the same content`,
				`cluster "c": applying the manifests would update MachineSet "c-w" (3 -> 2): it has settings or labels of Omni's own that no document can express`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, warningsFor("c", &test.exported, bare(), test.inexpressible)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContentsAreWarnedOf(t *testing.T) {
	patches := []v1alpha1.Patch{{Name: "a"}}

	for name, change := range map[string]func(*Objects){
		"patch of the cluster":       func(o *Objects) { o.Cluster.Spec.Patches = patches },
		"manifest":                   func(o *Objects) { o.Cluster.Spec.Kubernetes.Manifests = []v1alpha1.Manifest{{}} },
		"healthcheck":                func(o *Objects) { o.Cluster.Spec.Kubernetes.Healthchecks = []v1alpha1.Healthcheck{{}} },
		"patch of the control plane": func(o *Objects) { o.ControlPlane.Spec.Patches = patches },
		"patch of workers": func(o *Objects) {
			o.Workers = make([]v1alpha1.OmniWorkers, 2)
			o.Workers[1].Spec.Patches = patches
		},
		"patch of a machine": func(o *Objects) {
			o.Machines = make([]v1alpha1.OmniMachine, 2)
			o.Machines[1].Spec.Patches = patches
		},
	} {
		objects := bare()
		if hasContents(objects) {
			t.Fatalf("%s: contents before there are any", name)
		}

		change(objects)

		if !hasContents(objects) {
			t.Errorf("%s: no contents", name)
		}
	}
}
