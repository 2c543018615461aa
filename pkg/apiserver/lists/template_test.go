package lists

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/quota"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// namespace is what a namespace has, by resource.
type namespace map[string]quota.Use

func (n namespace) Stored(resource, _ string) quota.Use { return n[resource] }

func (n namespace) Largest(resource, _ string, objects int64) int64 {
	return n[resource].Bytes / n[resource].Objects * objects
}

// nested is a block with so many equal elements, so many lists deep.
func nested(depth, elements int, element string) string {
	return `{"a":` + strings.Repeat("[", depth) + strings.TrimSuffix(strings.Repeat(element+",", elements), ",") + strings.Repeat("]", depth) + "}"
}

func patches(t *testing.T, blocks ...string) []v1alpha1.Patch {
	t.Helper()

	made := make([]v1alpha1.Patch, len(blocks))
	for i, block := range blocks {
		made[i] = v1alpha1.Patch{Name: fmt.Sprint(i), Inline: &v1alpha1.FreeForm{}}
		if err := json.Unmarshal([]byte(block), made[i].Inline); err != nil {
			t.Fatal(err)
		}
	}

	return made
}

func stored(t *testing.T, object any) quota.Use {
	t.Helper()

	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}

	return quota.Use{Objects: 1, Bytes: int64(len(text))}
}

// TestTemplateCost: a template is never rendered with more memory than it counts, whatever its blocks are.
func TestTemplateCost(t *testing.T) {
	foreigntest.Sequential(t)

	one := intstr.FromInt32(1)

	for name, blocks := range map[string]struct{ cluster, controlPlane []string }{
		"small":                     {cluster: []string{nested(1, 3, `"x"`)}},
		"many small":                {cluster: strings.Split(strings.Repeat(nested(1, 3, `"x"`)+"|", 2000), "|")[:2000]},
		"deep":                      {cluster: []string{nested(126, 1000, "1")}},
		"deeper than it has values": {cluster: []string{nested(126, 1, "1")}},
		"deep and large":            {cluster: []string{nested(126, 25_000, "1"), nested(126, 20_000, "1")}},
		"flat":                      {cluster: []string{nested(1, 49_000, "[]")}},
		"flat and deep":             {cluster: []string{nested(126, 45_000, "1")}, controlPlane: []string{nested(1, 49_000, "[]")}},
		"long lines":                {cluster: []string{nested(1, 1, `"`+strings.Repeat("é", 100_000)+`"`)}},
		"deep lines":                {cluster: []string{nested(126, 1, `"`+strings.Repeat(`x\n`, 40_000)+`"`)}},
	} {
		input := template.Input{
			Cluster: &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u"}, Spec: v1alpha1.OmniClusterSpec{Patches: patches(t, blocks.cluster...)}},
			ControlPlanes: []v1alpha1.OmniControlPlane{{Spec: v1alpha1.OmniControlPlaneSpec{
				ClusterRef:           v1alpha1.LocalObjectReference{Name: "c"},
				MachineConfiguration: v1alpha1.MachineConfiguration{Patches: patches(t, blocks.controlPlane...)},
				MachineSetMachines:   v1alpha1.MachineSetMachines{MachineClass: &v1alpha1.MachineClass{Name: "m", Size: &one}},
			}}},
		}

		var length int

		took := foreigntest.PeakBytes(t, func() {
			documents, err := template.Assemble(input)
			if err != nil {
				t.Fatal(err)
			}

			text, err := documents.Render(template.Reference, template.MarkOf(input.Cluster, template.Hub{}))
			if length = len(text); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})

		has := namespace{"omniclusters": stored(t, input.Cluster), "omnicontrolplanes": stored(t, input.ControlPlanes[0])}
		cost := templateCost(&genericapirequest.RequestInfo{Resource: "omniclusters", Namespace: "default"}, has)

		t.Logf("%s: %d KiB of stored objects, %d KiB of text: took %d KiB of %d", name,
			(has["omniclusters"].Bytes+has["omnicontrolplanes"].Bytes)>>10, length>>10, took>>10, cost>>10)

		if took > uint64(cost) {
			t.Errorf("%s took %d bytes, and counts %d", name, took, cost)
		}
	}
}
