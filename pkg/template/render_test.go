package template

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

func configMap(name, key string) *v1alpha1.ValueSource {
	return &v1alpha1.ValueSource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: name, Key: key}}
}

func secret(name, key string) *v1alpha1.ValueSource {
	return &v1alpha1.ValueSource{SecretKeyRef: &v1alpha1.KeyReference{Name: name, Key: key}}
}

func TestMark(t *testing.T) {
	forged := map[string]string{
		"keep":                                 "me",
		"omni.texashpc.com/owner-uid":          "forged",
		"omni.texashpc.com/owner-namespace":    "forged",
		"omni.texashpc.com/owner-name":         "forged",
		"omni.texashpc.com/management-cluster": "forged",
		"omni.texashpc.com/hub-id":             "forged",
	}

	for name, test := range map[string]struct {
		annotations map[string]string
		hub         Hub
		want        map[string]string
	}{
		"no annotations": {nil, Hub{}, map[string]string{
			"omni.texashpc.com/owner-uid": "uid-1", "omni.texashpc.com/owner-namespace": "omni", "omni.texashpc.com/owner-name": "edge",
		}},
		"forged, no management cluster": {forged, Hub{}, map[string]string{
			"omni.texashpc.com/owner-uid": "uid-1", "omni.texashpc.com/owner-namespace": "omni", "omni.texashpc.com/owner-name": "edge",
			"keep": "me",
		}},
		"forged, management cluster": {forged, Hub{Name: "hub"}, map[string]string{
			"omni.texashpc.com/owner-uid": "uid-1", "omni.texashpc.com/owner-namespace": "omni", "omni.texashpc.com/owner-name": "edge",
			"omni.texashpc.com/management-cluster": "hub", "keep": "me",
		}},
		"forged, hub": {forged, Hub{ID: "hub-1"}, map[string]string{
			"omni.texashpc.com/owner-uid": "uid-1", "omni.texashpc.com/owner-namespace": "omni", "omni.texashpc.com/owner-name": "edge",
			"omni.texashpc.com/hub-id": "hub-1", "keep": "me",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, marked(test.annotations, MarkOf(cluster(), test.hub))); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}

	if forged["omni.texashpc.com/owner-uid"] != "forged" {
		t.Error("the object's own annotations were changed")
	}
}

func TestMarkReachesTheClusterInOmni(t *testing.T) {
	for _, res := range translate(t, render(t, loadInput(t, "full"), nil)) {
		if _, ok := res.(*omni.Cluster); !ok {
			continue
		}

		if uid, _ := res.Metadata().Annotations().Get(v1alpha1.MarkOwnerUID); uid != "0d5d1b2e-aaaa-4bbb-8ccc-000000000003" {
			t.Errorf("the mark's UID is %q", uid)
		}

		return
	}

	t.Fatal("the cluster is missing")
}

func TestHash(t *testing.T) {
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if got := Hash([]byte("abc")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestReference(t *testing.T) {
	for want, source := range map[string]*v1alpha1.ValueSource{
		"# valueFrom: key \"k\" of ConfigMap \"a\" (the content is not shown)\n":             configMap("a", "k"),
		"# valueFrom: key \"k.yaml\" of Secret \"b\" (the content is not shown)\n":           secret("b", "k.yaml"),
		"# valueFrom: key \"k\\nx: y\" of Secret \"a\\u2028b\" (the content is not shown)\n": secret("a\u2028b", "k\nx: y"),
	} {
		got, err := Reference(*source)
		if err != nil || got != want {
			t.Errorf("got %q and %v, want %q", got, err, want)
		}
	}

	both := v1alpha1.ValueSource{ConfigMapKeyRef: &v1alpha1.KeyReference{}, SecretKeyRef: &v1alpha1.KeyReference{}}
	for _, source := range []v1alpha1.ValueSource{{}, both} {
		if text, err := Reference(source); err == nil {
			t.Errorf("%v gives %q, want an error", source, text)
		}
	}
}

func TestValues(t *testing.T) {
	documents, err := Assemble(loadInput(t, "values"))
	if err != nil {
		t.Fatal(err)
	}

	want := []v1alpha1.ValueSource{
		*configMap("manifests", "objects.yaml"), *configMap("patches", "crlf"), *configMap("patches", "kept"),
		*secret("patches", "login"),
	}
	if diff := cmp.Diff(want, documents.Values()); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}

	// Values lists what Render asks for, no more and no less.
	asked := map[string]bool{}

	_, err = documents.Render(func(source v1alpha1.ValueSource) (string, error) {
		text, err := Reference(source)
		asked[text] = true

		return text, err
	}, MarkOf(documents.Cluster, Hub{}))
	if err != nil {
		t.Fatal(err)
	}

	for _, source := range documents.Values() {
		text, _ := Reference(source)
		delete(asked, text)
	}

	if len(asked) != 0 || len(documents.Values()) != 4 {
		t.Errorf("Render asked for %v, which Values does not list", asked)
	}
}

// A source is found wherever it stands: what is not listed is not watched.
func TestValuesOfEveryDocument(t *testing.T) {
	patch := func(name string) []v1alpha1.Patch { return []v1alpha1.Patch{{ValueFrom: secret(name, "k")}} }

	documents, err := Assemble(loadInput(t, "values"))
	if err != nil {
		t.Fatal(err)
	}

	documents.Cluster.Spec.Patches, documents.ControlPlane.Spec.Patches = patch("of-cluster"), patch("of-control-plane")
	documents.Cluster.Spec.Kubernetes.Manifests = []v1alpha1.Manifest{{ValueFrom: secret("of-manifests", "k")}}

	workers, machine := v1alpha1.OmniWorkers{}, v1alpha1.OmniMachine{}
	workers.Spec.Patches, machine.Spec.Patches = patch("of-workers"), patch("of-machine")
	documents.Workers, documents.Machines = []v1alpha1.OmniWorkers{workers}, []v1alpha1.OmniMachine{machine}

	want := []v1alpha1.ValueSource{
		*secret("of-cluster", "k"), *secret("of-control-plane", "k"), *secret("of-machine", "k"), *secret("of-manifests", "k"), *secret("of-workers", "k"),
	}
	if diff := cmp.Diff(want, documents.Values()); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

var errAbsent = errors.New("not found")

func TestRenderErrors(t *testing.T) {
	block := freeForm(t, `{"machine":{}}`)
	size := intstr.FromString("many")

	for name, test := range map[string]struct {
		change func(*Input)
		values ValueFunc
		mark   Mark
		want   string
	}{
		"no UID": {
			change: func(*Input) {}, mark: Mark{Name: "edge"},
			want: "render template: the owner's UID is missing",
		},
		"value not found": {
			change: func(in *Input) {
				in.Cluster.Spec.Patches = []v1alpha1.Patch{{Name: "p", ValueFrom: secret("s", "k")}}
			},
			values: func(v1alpha1.ValueSource) (string, error) { return "", errAbsent },
			want:   `render template: OmniCluster "edge": patch 0 (p): key "k" of Secret "s": not found`,
		},
		"value is not text": {
			change: func(in *Input) {
				in.ControlPlanes[0].Spec.Patches = []v1alpha1.Patch{{Name: "ok", Inline: &block}, {IDOverride: "id", ValueFrom: configMap("c", "k")}}
			},
			values: func(v1alpha1.ValueSource) (string, error) { return "canary\xff", nil },
			want:   `render template: OmniControlPlane "edge-cp": patch 1 (id): key "k" of ConfigMap "c": the text is not valid UTF-8`,
		},
		"source without member": {
			change: func(in *Input) {
				in.Cluster.Spec.Kubernetes.Manifests = []v1alpha1.Manifest{{Name: "m", ValueFrom: &v1alpha1.ValueSource{}}}
			},
			want: `render template: OmniCluster "edge": manifest "m": valueFrom needs exactly one of configMapKeyRef and secretKeyRef`,
		},
		"neither inline nor valueFrom": {
			change: func(in *Input) { in.Cluster.Spec.Patches = []v1alpha1.Patch{{Name: "p"}} },
			want:   `render template: OmniCluster "edge": patch 0 (p): exactly one of inline and valueFrom is needed`,
		},
		"inline and valueFrom": {
			change: func(in *Input) {
				in.Cluster.Spec.Patches = []v1alpha1.Patch{{Name: "p", Inline: &block, ValueFrom: secret("s", "k")}}
			},
			want: `render template: OmniCluster "edge": patch 0 (p): exactly one of inline and valueFrom is needed`,
		},
		"no job": {
			change: func(in *Input) { in.Cluster.Spec.Kubernetes.Healthchecks = []v1alpha1.Healthcheck{{Name: "h"}} },
			want:   `render template: OmniCluster "edge": healthcheck "h": job is missing`,
		},
		"no class size": {
			change: func(in *Input) { in.ControlPlanes[0].Spec.MachineClass = &v1alpha1.MachineClass{Name: "c"} },
			want:   `render template: OmniControlPlane "edge-cp": machineClass: size is missing`,
		},
		"class size is a word": {
			change: func(in *Input) {
				in.Workers = []v1alpha1.OmniWorkers{workers("w", "pool")}
				in.Workers[0].Spec.MachineClass = &v1alpha1.MachineClass{Name: "c", Size: &size}
			},
			want: `render template: OmniWorkers "w": machineClass: size "many" is neither a number of machines up to 2147483647 nor unlimited`,
		},
		"machine's patch": {
			change: func(in *Input) {
				in.Machines = []v1alpha1.OmniMachine{machine("m", "11111111-0000-4000-8000-000000000001")}
				in.Machines[0].Spec.Patches = []v1alpha1.Patch{{Name: "p", Inline: &v1alpha1.FreeForm{Raw: []byte("{")}}}
			},
			want: `render template: OmniMachine "m": patch 0 (p): object 1: read the object: unexpected EOF`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := loadInput(t, "minimal")
			test.change(&in)

			documents, err := Assemble(in)
			if err != nil {
				t.Fatal(err)
			}

			mark := test.mark
			if mark == (Mark{}) {
				mark = MarkOf(in.Cluster, Hub{})
			}

			text, err := documents.Render(test.values, mark)
			if err == nil || err.Error() != test.want {
				t.Errorf("got %q and %v, want %s", text, err, test.want)
			}

			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Error("the error shows the value")
			}
		})
	}
}

func TestRenderErrorKeepsTheCallersType(t *testing.T) {
	in := loadInput(t, "values")

	documents, err := Assemble(in)
	if err != nil {
		t.Fatal(err)
	}

	_, err = documents.Render(func(v1alpha1.ValueSource) (string, error) { return "", errAbsent }, MarkOf(in.Cluster, Hub{}))
	if !errors.Is(err, errAbsent) {
		t.Errorf("got %v, want the caller's error inside", err)
	}
}

// A hundred kilobytes of nested lists become twelve megabytes of YAML: forty such patches must not become half a gigabyte.
func TestRenderIsBounded(t *testing.T) {
	const (
		depth  = 120
		values = 50_000
		bound  = 128 << 20 // twelve megabytes of text as they grow, and the tree of one patch
	)

	nested := `{"a":` + strings.Repeat("[", depth) + "1" + strings.Repeat(",1", values-1) + strings.Repeat("]", depth) + "}"

	for name, change := range map[string]func(*v1alpha1.Patch){
		"inline": func(p *v1alpha1.Patch) { p.Inline = &v1alpha1.FreeForm{Raw: []byte(nested)} },
		"values": func(p *v1alpha1.Patch) { p.ValueFrom = configMap("large", "key") },
	} {
		in := loadInput(t, "minimal")

		for i := range 40 {
			set := workers(fmt.Sprintf("w%d", i), fmt.Sprintf("pool%d", i))
			set.Spec.Patches = []v1alpha1.Patch{{Name: "p"}}
			change(&set.Spec.Patches[0])
			in.Workers = append(in.Workers, set)
		}

		documents, err := Assemble(in)
		if err != nil {
			t.Fatal(err)
		}

		large := func(v1alpha1.ValueSource) (string, error) { return strings.Repeat("x: y\n", 200_000), nil }

		foreigntest.WantPeak(t, bound, func() { _, err = documents.Render(large, MarkOf(in.Cluster, Hub{})) })

		if !errors.As(err, new(tooLargeError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
