package export

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func yamlText(value any) (string, error) {
	text, err := yaml.Marshal(value)

	return string(text), err
}

const (
	clusterHead = "kind: Cluster\nname: %s\nkubernetes: {version: v1.35.1}\ntalos: {version: v1.13.3}\n"
	controlHead = "---\nkind: ControlPlane\nmachines: [11111111-0000-4000-8000-000000000001]\n"
)

func clusterText(name, extra string) string {
	return fmt.Sprintf(clusterHead, name) + extra + controlHead
}

func TestNames(t *testing.T) {
	for id, want := range map[string]string{
		"edge":                   "edge",
		"C_BAD":                  "c-bad-af37cec8",
		"___":                    "omni-24ff5d88",
		strings.Repeat("a", 63):  strings.Repeat("a", 63),
		"edge-control-planes":    "edge-control-planes",
		"-starts-with-a-hyphen-": "starts-with-a-hyphen-3a4d6e8f",
	} {
		got := ObjectName(id)
		// The hash is checked by its form; the readable part literally.
		if len(got) != len(want) || !strings.HasPrefix(got, want[:max(0, len(want)-hashLength)]) {
			t.Errorf("ObjectName(%q) = %q, want the form of %q", id, got, want)
		}
	}

	if ObjectName("c_bad") == ObjectName("C_BAD") || ObjectName("c_bad") == ObjectName("c-bad") {
		t.Error("two IDs have one name")
	}

	if long := ObjectName(strings.Repeat("a", 127)); len(long) > maxName {
		t.Errorf("%q has %d characters", long, len(long))
	}
}

// Which contents stay readable, and which have to be kept elsewhere.
func TestInlineOrConfigMap(t *testing.T) {
	for content, inline := range map[string]bool{
		"machine:\n  sysctls:\n    a: b\n":       true,
		"machine:\n  env:\n    A: \"1.0\"\n":     true,
		"a: 9007199254740991\n":                  true,
		"a: -1\nb: true\n":                       true,
		"a: 9007199254740992\n":                  false, // a float would lose it
		"a: 1.0\n":                               false,
		"a: 0x10\n":                              false,
		"a: null\n":                              false,
		"$patch: delete\n":                       false,
		"a: &x {b: c}\nd: *x\n":                  false,
		"machine:\n    sysctls:\n        a: b\n": false, // another indentation
		"# why\na: b\n":                          false,
		"a: b":                                   false, // no line break at the end
		"a: b\r\n":                               false,
		"b: c\na: b\n":                           false, // keys are not sorted
		"":                                       false,
		"- a\n":                                  false,
		"a: [\n":                                 false,
		"1: b\n":                                 false,
		"a: |\n  " + strings.Repeat("x", 65<<10): false,
		"apiVersion: v1\n---\napiVersion: v2\n":  true,
		"a: " + strings.Repeat("[", 80) + "\n":   false,
		"a:\n  b: |\n    #!/bin/sh\n    echo ok\n": true,
	} {
		if _, got := inlineBlocks(content); got != inline {
			t.Errorf("inlineBlocks(%.60q) = %t", content, got)
		}
	}
}

// Contents that cannot be inline come back byte for byte.
func TestContentsStayExact(t *testing.T) {
	for _, content := range []string{
		"# why: see the runbook\nmachine: {env: {A: b}}   # odd\n", "machine:\r\n  env:\r\n    A: b\r\n", "\n\nmachine:\n  env: {A: \"\\u2028\"}\n\n\n",
		"machine:\n    env:\n        A: b", "  machine:\n    env: {A: b}  \n",
	} {
		quoted, err := yaml.Marshal(map[string]any{"patches": []any{map[string]any{
			"idOverride": "500-x", "annotations": map[string]string{"name": "x"},
			"inline": &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: content},
		}}})
		if err != nil {
			t.Fatal(err)
		}

		objects := wantSameResources(t, []byte(clusterText("edge", string(quoted))))

		if len(objects.ConfigMaps) != 1 || objects.ConfigMaps[0].Data["content"] != content {
			t.Errorf("ConfigMaps %+v, want %q", objects.ConfigMaps, content)
		}

		var written bytes.Buffer
		if err := Write(&written, objects.Manifests()[:1]); err != nil {
			t.Fatal(err)
		}

		var back struct{ Data map[string]string }
		if err := sigsyaml.Unmarshal(written.Bytes(), &back); err != nil || back.Data["content"] != content {
			t.Errorf("kubectl reads %q (%v), want %q", back.Data["content"], err, content)
		}
	}
}

func TestWhatIsWritten(t *testing.T) {
	text := clusterText("C_BAD", `labels: {flag: "on", number: "1.0", day: "2001-01-01", "yes": "~"}
annotations: {omni.texashpc.com/owner-uid: somebody, omni.texashpc.com/owner-name: x, kept: "a: b"}
features: {backupConfiguration: {interval: 1h0m0s}}
systemExtensions: []
patches:
- idOverride: 500-x
  annotations: {name: sysctls}
  inline: |
    machine:
      sysctls:
        a: "1"
`) + "---\nkind: Workers\nmachineClass: {name: big, size: Unlimited}\nupdateStrategy: {type: Unset}\n" +
		"---\nkind: Machine\nname: 11111111-0000-4000-8000-000000000001\n"

	objects := wantSameResources(t, []byte(text))

	var written bytes.Buffer
	if err := Write(&written, objects.Manifests()); err != nil {
		t.Fatal(err)
	}

	name := ObjectName("C_BAD")
	want := `apiVersion: omni.texashpc.com/v1alpha1
kind: OmniControlPlane
metadata:
  name: ` + ObjectName("C_BAD-control-planes") + `
  namespace: fleet
spec:
  clusterRef:
    name: ` + name + `
  machines:
    - "11111111-0000-4000-8000-000000000001"
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniWorkers
metadata:
  name: ` + ObjectName("C_BAD-workers") + `
  namespace: fleet
spec:
  clusterRef:
    name: ` + name + `
  workerSetName: workers
  machineClass:
    name: big
    size: unlimited
  updateStrategy:
    type: Unset
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniCluster
metadata:
  name: ` + name + `
  namespace: fleet
spec:
  connectionRef:
    name: omni
  clusterName: C_BAD
  labels:
    day: "2001-01-01"
    flag: "on"
    number: "1.0"
    "yes": "~"
  annotations:
    kept: "a: b"
  kubernetes:
    version: v1.35.1
  talos:
    version: v1.13.3
  features:
    enableWorkloadProxy: false
    useEmbeddedDiscoveryService: false
    diskEncryption: false
    backupConfiguration:
      interval: "1h"
  patches:
    - name: sysctls
      idOverride: "500-x"
      inline:
        machine:
          sysctls:
            a: "1"
  systemExtensions: []
  deletePolicy:
    orphan: true
    destroyMachines: false
  adopt: true
  changePolicy: Observe
  suspend: false
`
	if diff := cmp.Diff(want, written.String()); diff != "" {
		t.Errorf("manifests (-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeExpressed(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"no control plane":        {fmt.Sprintf(clusterHead, "a"), "no Cluster or no ControlPlane"},
		"unknown key":             {clusterText("a", "novelty: 1\n"), "novelty"},
		"a file":                  {clusterText("a", "patches: [{name: a, file: /etc/passwd}]\n"), "file"},
		"a mapping":               {clusterText("a", "patches: [{name: a, inline: {a: b}}]\n"), "document 1"},
		"unknown kind":            {clusterText("a", "") + "---\nkind: Other\n", `unknown kind "Other"`},
		"the least":               {clusterText("a", "") + "", ""},
		"a class that is too big": {clusterText("a", "") + "---\nkind: Workers\nname: w\nmachineClass: {name: a, size: 4294967295}\n", "2147483647"},
		"a long name":             {clusterText(strings.Repeat("n", 64), ""), "its name has 64 characters, and at most 63"},
		"a long name of a set":    {clusterText("a", "") + "---\nkind: Workers\nname: " + strings.Repeat("n", 64) + "\nmachines: []\n", "its name has 64 characters"},
		"bootstrap of workers":    {clusterText("a", "") + "---\nkind: Workers\nname: w\nbootstrapSpec: {clusterUUID: a, snapshot: b}\n", "bootstrapSpec"},
	} {
		_, err := FromTemplate(t.Context(), []byte(test.text), ObjectOptions{Connection: "omni"})
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

// The job of a health check is read as Omni does it, which decodes it with the YAML 1.1 of Kubernetes.
func TestJobOf(t *testing.T) {
	for content, want := range map[string]string{
		"a: yes\nb: off\nc: \"no\"\n":              `{"a":true,"b":false,"c":"no"}`,
		"mode: 0755\nhex: 0x1F\nlong: 1_000\n":     `{"hex":31,"long":1000,"mode":493}`,
		"a: &x {b: 1}\nc: *x\n":                    `{"a":{"b":1},"c":{"b":1}}`,
		"day: 2026-01-02\nnothing: ~\nhalf: 0.5\n": `{"day":"2026-01-02","half":0.5,"nothing":null}`,
		`{"number":9007199254740993}`:              `{"number":9007199254740993}`,
		"---\na: b\n---\n":                         `{"a":"b"}`,
		"a: b\n---\nc: d\n":                        "it holds 2 objects",
		"$patch: delete\n":                         "does not keep its meaning",
		"- a\n":                                    "does not keep its meaning",
		"a: [\n":                                   "is neither YAML nor JSON",
	} {
		job, err := jobOf(t.Context(), content)

		got := fmt.Sprint(err)
		if err == nil {
			raw, _ := job.MarshalJSON()
			got = string(raw)
		}

		if err == nil && got != want || err != nil && !strings.Contains(got, want) {
			t.Errorf("%q: got %s, want %s", content, got, want)
		}
	}
}

// The API refuses annotations under our prefix: a mark of any version would make the manifests unusable.
func TestMarksAreNotExported(t *testing.T) {
	got := unmarked(map[string]string{v1alpha1.MarkOwnerUID: "a", "omni.texashpc.com/of-an-older-version": "b", "omni.texashpc.community/x": "c"})
	if diff := cmp.Diff(map[string]string{"omni.texashpc.community/x": "c"}, got); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestDurations(t *testing.T) {
	for in, want := range map[v1alpha1.Duration]v1alpha1.Duration{
		"1h": "1h", "90m": "1h30m", "45s": "45s", "10m": "10m", "1h0m1s": "1h0m1s", "0s": "0s",
	} {
		parsed, err := in.Parse()
		if err != nil {
			t.Fatal(err)
		}

		if got := durationOf(parsed); got != want {
			t.Errorf("durationOf(%s) = %s, want %s", in, got, want)
		}
	}
}
