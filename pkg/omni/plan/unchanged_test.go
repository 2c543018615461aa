package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// The same patch, as a map, which Omni's library writes in its own format, and as two texts.
const (
	patchAsMap = `
    machine:
      network: {hostname: x, nameservers: [10.0.0.53]}
      sysctls: {net.core.somaxconn: "65535"}
      kubelet: {extraArgs: {rotate-server-certificates: "true", node-status-update-frequency: 30s}}
    cluster: {apiServer: {admissionControl: [{name: PodSecurity, configuration: {large: 9007199254740993, small: 1.5}}]}}
`
	patchAsText = ` |
    # Ours.
    cluster:
      apiServer:
        admissionControl:
          - configuration:
              large: 9007199254740993
              small: 1.5
            name: PodSecurity
    machine:
      kubelet:
        extraArgs:
          node-status-update-frequency: "30s"
          rotate-server-certificates: "true"
      network:
        hostname: x
        nameservers:
          - "10.0.0.53"
      sysctls:
        net.core.somaxconn: "65535"
`
)

// patched returns a template whose cluster has a patch.
func patched(inline string) string {
	return strings.Replace(omnitest.FullTemplate, "talos:", "patches:\n- name: a\n  inline:"+inline+"talos:", 1)
}

// withManifests returns a template whose cluster has a manifest group.
func withManifests(mode, inline string) string {
	return strings.Replace(omnitest.FullTemplate, "  version: v1.35.0\n", "  version: v1.35.0\n  manifests:\n  - name: a\n    mode: "+mode+"\n    inline:"+inline, 1)
}

const (
	manifestAsMap = `
    - {apiVersion: v1, kind: Namespace, metadata: {name: x, labels: {size: "1"}}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: y1, namespace: x}, data: {address: 10.0.0.0/8}}
`
	manifestAsText = ` |
      apiVersion: v1
      kind: Namespace
      metadata:
        labels:
          size: "1"
        name: x
      ---
      # Ours.
      apiVersion: v1
      data:
        address: "10.0.0.0/8"
      kind: ConfigMap
      metadata: {name: y1, namespace: x}
`
)

// withHealthcheck returns a template whose cluster has a health check.
func withHealthcheck(interval, job string) string {
	return strings.Replace(omnitest.FullTemplate, "  version: v1.35.0\n", "  version: v1.35.0\n  healthchecks:\n  - name: a\n    interval: "+interval+"\n    job:"+job, 1)
}

const (
	jobAsMap  = " {apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {template: {spec: {containers: [{name: x, image: x, args: [-w, \"5\"]}]}}}}\n"
	jobAsText = ` |
      apiVersion: batch/v1
      kind: Job
      metadata: {name: x} # Ours.
      spec:
        template:
          spec:
            containers:
            - args: ["-w", '5']
              image: x
              name: x
`
)

func TestFormatIsNoChange(t *testing.T) {
	for name, test := range map[string]struct{ first, second string }{
		"a patch":    {patched(patchAsMap), patched(patchAsText)},
		"back":       {patched(patchAsText), patched(patchAsMap)},
		"a manifest": {withManifests("full", manifestAsMap), withManifests("full", manifestAsText)},
		"a job":      {withHealthcheck("30s", jobAsMap), withHealthcheck("30s", jobAsText)},
		"once":       {withManifests("one-time", manifestAsMap), withManifests("one-time", manifestAsText)},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, test.first)

			for what, options := range map[string]Options{"sync": {}, "adoption": {EveryDestroyIsDestructive: true}, "rollout": {Rollout: true}} {
				if plan := mustPlan(t, st, test.second, options); !plan.Empty() || plan.Hash != "" {
					t.Errorf("%s: %v", what, lines(plan))
				}
			}
		})
	}
}

// What changes in more than its format is written as it is in the template.
func TestContentOfAnotherFormatIsAChange(t *testing.T) {
	for name, test := range map[string]struct{ first, second, want string }{
		"a value":         {patched(patchAsMap), patched(strings.Replace(patchAsText, "small: 1.5", "small: 1.6", 1)), `update ConfigPatch "200-cluster-demo-a"`},
		"its type":        {patched(patchAsMap), patched(strings.Replace(patchAsText, `"65535"`, `65535`, 1)), `update ConfigPatch "200-cluster-demo-a"`},
		"a large integer": {patched(patchAsMap), patched(strings.Replace(patchAsText, "740993", "740992", 1)), `update ConfigPatch "200-cluster-demo-a"`},
		"a fraction":      {patched(patchAsMap), patched(strings.Replace(patchAsText, "1.5", "1.50", 1)), `update ConfigPatch "200-cluster-demo-a"`},
		"an object":       {withManifests("full", manifestAsMap), withManifests("full", strings.Replace(manifestAsText, `size: "1"`, `size: "2"`, 1)), `update KubernetesManifestGroup "200-cluster-demo-a"`},
		"a job":           {withHealthcheck("30s", jobAsMap), withHealthcheck("30s", strings.Replace(jobAsText, "'5'", "5", 1)), `update KubernetesHealthCheck "cluster-demo-a"`},
		"an interval":     {withHealthcheck("30s", jobAsMap), withHealthcheck("1m", jobAsText), `update KubernetesHealthCheck "cluster-demo-a"`},
		"the mode":        {withManifests("one-time", manifestAsMap), withManifests("full", manifestAsText), `update KubernetesManifestGroup "200-cluster-demo-a"`},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, test.first)

			plan := mustPlan(t, st, test.second, Options{})
			if diff := cmp.Diff([]string{test.want}, lines(plan)); diff != "" {
				t.Fatal(diff)
			}

			if text, readable := content(plan.steps[0].new); !readable || !strings.Contains(text, "Ours.") {
				t.Errorf("what is written: %q", text)
			}

			mustSync(t, st, test.second)

			if plan = mustPlan(t, st, test.second, Options{}); !plan.Empty() {
				t.Error(lines(plan))
			}
		})
	}
}

// Metadata that differ are a change, whatever the format is.
func TestMetadataOfAnotherFormatAreAChange(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, patched(patchAsMap))

	second := strings.Replace(patched(patchAsText), "- name: a\n", "- name: a\n  labels: {x: y}\n", 1)
	if got := lines(mustPlan(t, st, second, Options{})); len(got) != 1 {
		t.Error(got)
	}
}

// A text that cannot be read, or not within bounds, is different from every other one.
func TestTextsThatCannotBeReadAreAChange(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML":   "a: [",
		"a list":    "a: [" + strings.Repeat("a,", 2<<20) + "]",
		"key twice": "apiVersion: v1\nkind: Namespace\nkind: Namespace\nmetadata: {name: x, labels: {size: \"1\"}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			old := groupByHand(t, "a", text, specs.KubernetesManifestGroupSpec_FULL)
			updated := groupByHand(t, "a", text+"\n", specs.KubernetesManifestGroupSpec_FULL)

			if unchanged(t.Context(), old, updated) {
				t.Error("it is the same")
			}

			if !unchanged(t.Context(), old, old.DeepCopy().(*omnires.KubernetesManifestGroup)) {
				t.Error("the same bytes differ")
			}
		})
	}
}
