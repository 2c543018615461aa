package migrate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// renderingState is a hub with a cluster, what the old operator renders into its template, and Secrets that belong to that.
func renderingState(t *testing.T, clusterSpec string, rendering map[string]string, secrets ...string) *state {
	t.Helper()

	s := &state{HubID: "hub", Objects: []unstructured.Unstructured{*stored(t, "OmniCluster", "", clusterSpec)}, Definitions: []unstructured.Unstructured{*parsed(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: omniclusters.omni.texashpc.com}
spec: {group: omni.texashpc.com, names: {kind: OmniCluster, plural: omniclusters}, versions: [{name: v1alpha1, served: true}]}`)}}

	for _, id := range []string{"OmniCilium net", "OmniCilium other", "OmniClusterAddon zz", "OmniClusterAddon logs"} {
		kind, name, _ := strings.Cut(id, " ")
		if spec, there := rendering[id]; there {
			obj := stored(t, kind, "", spec)
			obj.SetName(name)
			obj.SetFinalizers(nil)
			s.Objects = append(s.Objects, *obj)
		}
	}

	for _, name := range secrets {
		s.Owned = append(s.Owned, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}})
	}

	return s
}

const renderingCluster = `{connectionRef: {name: omni}, talos: {version: v1.13.3}, patches: [{name: own, inline: {machine: {sysctls: {a: b}}}}],
  kubernetes: {version: v1.35.1, manifests: [{name: zzz, mode: full, inline: [{apiVersion: v1, kind: Namespace, metadata: {name: a}}]}]}}`

// What OmniClusterAddons and an OmniCilium render is in the template in an order of its own, from which Omni derives IDs: behind
// the cluster's own, addons by the name of their manifest, Cilium last, with a patch behind the cluster's own.
func TestRenderedIsCarried(t *testing.T) {
	s := renderingState(t, renderingCluster, map[string]string{
		"OmniClusterAddon zz":   `{clusterRef: {name: one}, manifestName: a-metrics, mode: one-time, helm: {chart: c}}`,
		"OmniClusterAddon logs": `{clusterRef: {name: one}, helm: {chart: c}}`,
		"OmniCilium net":        `{clusterRef: {name: one}, chartVersion: 1.19.3, values: {kubeProxyReplacement: "True"}}`,
	}, "zz-addon-manifest", "logs-addon-manifest", "net-cilium-manifest")

	plan := planOf(s, nil)
	if plan.Refused() {
		t.Fatalf("%v\n%v", plan.Error(), plan.refusals())
	}

	cluster, _ := plan.Objects[0].Object.(*v1alpha1.OmniCluster)

	var got []string
	for _, manifest := range cluster.Spec.Kubernetes.Manifests {
		line := manifest.Name + " " + string(manifest.Mode)
		if from := manifest.ValueFrom; from != nil {
			line += " " + from.SecretKeyRef.Name + " " + from.SecretKeyRef.Key
		}

		got = append(got, line)
	}

	for _, patch := range cluster.Spec.Patches {
		text, err := patch.Inline.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}

		got = append(got, patch.Name+" "+string(text))
	}

	if diff := cmp.Diff([]string{
		"zzz full", "a-metrics one-time zz-addon-manifest manifest.yaml", "logs full logs-addon-manifest manifest.yaml", "cilium full net-cilium-manifest manifest.yaml",
		`own {"machine":{"sysctls":{"a":"b"}}}`, `disable-default-cni-for-cilium {"cluster":{"network":{"cni":{"name":"none"}},"proxy":{"disabled":true}}}`,
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	for _, c := range plan.Objects[1:] {
		if c.Object != nil || len(c.Changes) != 1 || !strings.Contains(c.Changes[0].Text, "OmniCluster one reads Secret ") {
			t.Errorf("%s: %+v", c.ID(), c)
		}
	}
}

// kube-proxy is replaced by the values that the old operator takes for it.
func TestPatchOfCilium(t *testing.T) {
	for values, proxy := range map[string]string{
		`{}`: "", `{kubeProxyReplacement: true}`: `,"proxy":{"disabled":true}`, `{kubeProxyReplacement: false}`: "", `{kubeProxyReplacement: strict}`: `,"proxy":{"disabled":true}`,
		`{kubeProxyReplacement: " Partial"}`: "", `{kubeProxyReplacement: maybe}`: "refused", `{kubeProxyReplacement: 1}`: "refused", `[]`: "refused",
	} {
		plan := planOf(renderingState(t, renderingCluster, map[string]string{
			"OmniCilium net": `{clusterRef: {name: one}, chartVersion: 1.19.3, manifestName: net, mode: one-time, values: ` + values + `}`,
		}, "net-cilium-manifest"), nil)

		if refused := proxy == "refused"; plan.Refused() != refused {
			t.Fatalf("%s: %v", values, plan.refusals())
		} else if refused {
			continue
		}

		cluster, _ := plan.Objects[0].Object.(*v1alpha1.OmniCluster)
		text, err := cluster.Spec.Patches[1].Inline.MarshalJSON()

		if err != nil || string(text) != `{"cluster":{"network":{"cni":{"name":"none"}}`+proxy+`}}` || cluster.Spec.Kubernetes.Manifests[1].Name != "net" {
			t.Errorf("%s: %s, %v", values, text, err)
		}
	}
}

// What cannot be carried is refused before anything is changed.
func TestRenderedIsRefused(t *testing.T) {
	const cilium = `{clusterRef: {name: one}, chartVersion: 1.19.3}`

	for name, test := range map[string]struct {
		rendering map[string]string
		secrets   []string
		want      string
	}{
		"without its Secret": {map[string]string{"OmniCilium net": cilium}, nil, "OmniCilium team-a/net: [kind: Secret net-cilium-manifest is not there, or does not belong to it"},
		"without a cluster": {map[string]string{"OmniClusterAddon zz": `{clusterRef: {name: other}}`}, []string{"zz-addon-manifest"},
			"OmniClusterAddon team-a/zz: [spec.clusterRef.name: there is no OmniCluster other"},
		"two networks": {map[string]string{"OmniCilium net": cilium, "OmniCilium other": cilium}, []string{"net-cilium-manifest", "other-cilium-manifest"},
			"OmniCilium team-a/other: [spec.clusterRef.name: OmniCilium net is of the same cluster"},
		"a name that is taken": {map[string]string{"OmniClusterAddon zz": `{clusterRef: {name: one}, manifestName: zzz}`}, []string{"zz-addon-manifest"},
			`OmniCluster team-a/one: [spec.kubernetes.manifests[1].name: Duplicate value: "zzz"`},
		"nothing of a cluster": {map[string]string{"OmniClusterAddon zz": `{}`}, []string{"zz-addon-manifest"}, "OmniClusterAddon team-a/zz: [kind: this operator has no such kind"},
	} {
		plan := planOf(renderingState(t, renderingCluster, test.rendering, test.secrets...), nil)
		if err := plan.refusals(); err == nil || !strings.Contains(err.Error(), test.want) || strings.Count(err.Error(), ": [") != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A later run knows by its backup that the Secrets belonged to what was rendered, and imports the cluster with it, without
// importing that.
func TestRenderedInALaterRun(t *testing.T) {
	s := renderingState(t, renderingCluster, map[string]string{"OmniCilium net": `{clusterRef: {name: one}, chartVersion: 1.19.3}`})
	b := &backup{Owned: []ownedSecret{{Namespace: "team-a", Name: "net-cilium-manifest"}}}

	if plan := planOf(s, b); plan.Refused() {
		t.Errorf("%v", plan.refusals())
	}

	m := migrationOn(fakeHub())
	m.backup = &backup{Objects: s.Objects}

	all := m.converted()
	if len(all) != 1 {
		t.Fatalf("%d objects", len(all))
	}

	cluster, _ := all[0].Object.(*v1alpha1.OmniCluster)
	if got := fmt.Sprint(len(cluster.Spec.Kubernetes.Manifests), len(cluster.Spec.Patches)); got != "2 2" {
		t.Errorf("manifests and patches: %s", got)
	}
}
