package migrate

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What our API server would refuse in step 10, after the definitions are deleted, is refused before the first step.
func TestRefusedBySize(t *testing.T) {
	large := make([]string, 0, 8)
	for i := range 8 {
		large = append(large, fmt.Sprintf("{name: m%d, mode: full, inline: [{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {a: %s}}]}", i, strings.Repeat("a", 160<<10)))
	}

	many := make([]string, 0, 6)
	for i := range 6 {
		many = append(many, fmt.Sprintf("{name: m%d, mode: full, inline: [{apiVersion: v1, kind: List, metadata: {name: m}, items: [%s]}]}", i, strings.Repeat("1,", 9_900)))
	}

	// Definitions store what is nested deeper than our API server can list.
	nested := func(levels int) []string {
		return []string{`{name: deep, mode: full, inline: [{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, a: ` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `}]}`}
	}

	for name, test := range map[string]struct{ manifests, want []string }{
		"large":       {large, []string{"spec: Too long: has 12"}},
		"many values": {many, []string{"spec: Invalid value: has more than 50000 values"}},
		"flat enough": {nested(120), nil},
		"deep":        {nested(150), []string{"spec.kubernetes.manifests[0].inline: Invalid value: is nested deeper than 128 levels"}},
		"deeper": {nested(300), []string{
			"spec.kubernetes.manifests[0].inline: Invalid value: is nested deeper than 128 levels", "spec: Invalid value: is nested deeper than 256 levels",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			old := stored(t, "OmniCluster", "", `{connectionRef: {name: omni}, talos: {version: v1.13.3}, kubernetes: {version: v1.35.1, manifests: [`+strings.Join(test.manifests, ", ")+`]}}`)
			wantFindings(t, "refused", test.want, Convert(old).Refusals)
		})
	}
}

// Two objects that are the same cluster in Omni: our API server refuses the second.
func TestRefusedSameCluster(t *testing.T) {
	named := func(namespace, name, rest string) unstructured.Unstructured {
		obj := stored(t, "OmniCluster", "", cluster+rest+"}")
		obj.SetNamespace(namespace)
		obj.SetName(name)

		return *obj
	}

	all := ConvertAll([]unstructured.Unstructured{
		named("team-a", "demo", ""), named("team-a", "other", ", clusterName: demo"), named("team-a", "third", ", clusterName: own"),
		named("team-b", "demo", ""),
	})

	for i, c := range all {
		if i != 1 {
			wantFindings(t, c.ID(), nil, c.Refusals)

			continue
		}

		wantFindings(t, c.ID(), []string{"spec.clusterName: OmniCluster demo is the same cluster in Omni"}, c.Refusals)

		if c.Object != nil {
			t.Error("refused, and there is an object all the same")
		}
	}
}
