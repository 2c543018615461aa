package omnicluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// inline is a patch with one field of Talos.
func inline(name, text string) v1alpha1.Patch {
	return v1alpha1.Patch{Name: name, Inline: &v1alpha1.FreeForm{Raw: []byte(text)}}
}

// creates is how often Omni was asked to make a patch.
func (f *fixture) creates() int {
	return f.omni.Requests()[omnisim.Request{Method: "Create", Type: "ConfigPatches.omni.sidero.dev"}]
}

// Omni has a patch that its next version refuses under another ID. A patch that is inserted before it moves its ID: the old one
// stays, and everything else goes on.
func TestRefusedPatchThatOmniHolds(t *testing.T) {
	cluster := newCluster()
	cluster.Spec.Patches = []v1alpha1.Patch{inline("disk", `{"machine":{"install":{"disk":"/dev/vda"}}}`)}
	f := newFixture(t, cluster, newWorkers("w", machineClass, 1))
	f.create(newControlPlane("cp", f.machines[0]))
	f.until("Ready", metav1.ConditionTrue, "Running")

	if err := f.omni.Upgrade("1.11"); err != nil {
		t.Fatal(err)
	}

	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	f.edit(func(o *v1alpha1.OmniCluster) {
		o.Spec.Patches = slices.Insert(o.Spec.Patches, 0, inline("first", `{"machine":{"sysctls":{"a":"b"}}}`))
		o.Spec.Kubernetes.Version = "v1.36.1"
	})
	f.resize(2)

	f.until("Synced", metav1.ConditionFalse, "Refused")
	f.eventually("the rest of the template", func() string {
		f.run()

		view := f.view()
		slices.Sort(view.Patches)

		return cmp.Diff([]string{"200-cluster-demo-disk", "200-cluster-demo-first"}, view.Patches) +
			cmp.Diff(2, view.Machines["demo-w"]) + cmp.Diff("1.36.1", view.KubernetesVersion)
	})
	f.quiet()

	refused := f.get()
	says(t, message(refused, "Synced"), `create ConfigPatch "201-cluster-demo-disk": Omni refuses this`, `keeps the same patch as "200-cluster-demo-disk"`,
		`idOverride: 200-cluster-demo-disk`)

	if refusals := refused.Status.Refusals; len(refusals) != 1 || !strings.Contains(refusals[0].Message, "idOverride") {
		t.Errorf("%+v", refusals)
	}

	// It is asked for again after the pause only.
	before := f.creates()
	for range 3 {
		f.run()
	}

	if got := f.creates() - before; got != 0 {
		t.Errorf("asked %d times within the pause", got)
	}

	f.advance(refusalPause)
	f.run()

	if got := f.creates() - before; got != 1 {
		t.Errorf("asked %d times after the pause", got)
	}

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Patches[1].IDOverride = "200-cluster-demo-disk" })

	if cluster = f.until("Ready", metav1.ConditionTrue, "Running"); cluster.Status.Refusals != nil {
		t.Errorf("%+v", cluster.Status.Refusals)
	}

	f.quiet()
	f.wantTornDown()
}
