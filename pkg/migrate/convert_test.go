package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// parsed reads one object of a test.
func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	obj := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}

	return obj
}

// stored makes an object as the operator with CRDs stores it, with extra fields of metadata.
func stored(t *testing.T, kind, metadata, spec string) *unstructured.Unstructured {
	t.Helper()

	return parsed(t, `apiVersion: omni.texashpc.com/v1alpha1
kind: `+kind+`
metadata: {name: one, namespace: team-a, uid: 11111111-0000-4000-8000-000000000001, resourceVersion: "7", generation: 3,
  finalizers: [omni.texashpc.com/finalizer]`+metadata+`}
spec: `+spec+`
status: {conditions: [{type: Ready, status: "True"}], lastSyncOutput: "synced"}
`)
}

const cluster = `{connectionRef: {name: omni}, kubernetes: {version: v1.35.1}, talos: {version: v1.13.3}`

func TestConvert(t *testing.T) {
	for name, test := range map[string]struct {
		kind, metadata, spec string
		want                 string // the spec as YAML in flow style is hard to read: parts that it has to have
		refused              []string
		changed              []string
	}{
		"connection": {
			kind: "OmniConnection", spec: `{endpoint: "https://omni.example.com", auth: {serviceAccountSecretRef: {name: key, key: serviceAccountKey}}}`,
			want: "auth:\n  serviceAccountSecretRef:\n    key: serviceAccountKey\n    name: key\nendpoint: https://omni.example.com\ninsecureSkipTLSVerify: false\n",
		},
		"connection without TLS": {
			kind: "OmniConnection", spec: `{endpoint: "grpc://omni.example.com", insecureSkipTLSVerify: true, auth: {serviceAccountSecretRef: {name: key}}}`,
			want:    "auth:\n  serviceAccountSecretRef:\n    name: key\nendpoint: grpc://omni.example.com\ninsecureSkipTLSVerify: true\n",
			changed: []string{"spec.endpoint: without TLS", "spec.insecureSkipTLSVerify: use spec.caBundle"},
		},
		"cluster": {
			kind: "OmniCluster", spec: cluster + `, syncInterval: 5m, deletePolicy: {destroyMachines: true}, systemExtensions: [], patches: [{name: p, inline: {machine: {sysctls: {a: "1"}}}}]}`,
			want: "adopt: true\nconnectionRef:\n  name: omni\ndeletePolicy:\n  destroyMachines: true\n  orphan: false\nfeatures:\n  diskEncryption: false\n  enableWorkloadProxy: false\n" +
				"  useEmbeddedDiscoveryService: false\nkubernetes:\n  version: v1.35.1\npatches:\n- inline:\n    machine:\n      sysctls:\n        a: \"1\"\n  name: p\nsuspend: false\nsyncInterval: 5m\n" +
				"talos:\n  version: v1.13.3\n",
			changed: []string{"spec.systemExtensions: goes: ", "spec.adopt: true"},
		},
		"cluster that is let go and destroyed": {
			kind: "OmniCluster", spec: cluster + `, deletePolicy: {orphan: true, destroyMachines: true}}`,
			want: "adopt: true\nconnectionRef:\n  name: omni\ndeletePolicy:\n  destroyMachines: false\n  orphan: true\nfeatures:\n  diskEncryption: false\n  enableWorkloadProxy: false\n" +
				"  useEmbeddedDiscoveryService: false\nkubernetes:\n  version: v1.35.1\nsuspend: false\ntalos:\n  version: v1.13.3\n",
			changed: []string{"spec.adopt", "spec.deletePolicy.destroyMachines: goes"},
		},
		"cluster with files": {
			kind: "OmniCluster", spec: `{connectionRef: {name: omni}, templateRoot: /templates, kubernetes: {version: v1.35.1, manifests: [{name: m, mode: full, file: m.yaml}, {name: o, mode: full, file: "", inline: [{a: b}]}]},
  talos: {version: v1.13.3}, patches: [{name: p, file: p.yaml}, {name: q, inline: {machine: {}}}]}`,
			refused: []string{"spec.templateRoot: nothing here reads files", "spec.patches[0].file: ", "spec.kubernetes.manifests[0].file: "},
			changed: []string{"spec.adopt"},
		},
		"file at a machine": {
			kind: "OmniMachine", spec: `{clusterRef: {name: c}, machineID: 11111111-1111-4111-8111-111111111111, patches: [{name: p, file: p.yaml}]}`,
			refused: []string{"spec.patches[0].file: "},
		},
		"field that nobody has": {
			kind: "OmniCluster", spec: cluster + `, flavour: sweet}`,
			refused: []string{"spec.flavour: this operator has no such field"}, changed: []string{"spec.adopt"},
		},
		"text as a patch": {
			kind: "OmniCluster", spec: cluster + `, patches: [{name: p, inline: "machine: {}"}]}`,
			refused: []string{"spec: does not fit"},
		},
		"no spec": {kind: "OmniSecretSync", spec: "null", refused: []string{"spec: is missing"}},
		"kind that we do not have": {
			kind: "OmniOther", spec: `{}`, refused: []string{"kind: this operator has no such kind"},
		},
		"being deleted": {
			kind: "OmniConnection", metadata: `, deletionTimestamp: "2026-08-01T00:00:00Z"`,
			spec:    `{endpoint: "https://omni.example.com", auth: {serviceAccountSecretRef: {name: key}}}`,
			refused: []string{"metadata.deletionTimestamp: it is being deleted"},
		},
		"secret sync": {
			kind: "OmniSecretSync", spec: `{clusterRef: {name: c}, kubeconfigSecretRef: {name: k, key: kubeconfig}, sourceSecretRef: {name: s}, targetSecretRef: {name: t, namespace: apps}, deletionPolicy: Orphan}`,
			want: "adopt: true\nclusterRef:\n  name: c\ncreateNamespace: false\ndeletionPolicy: Orphan\nkubeconfigSecretRef:\n  key: kubeconfig\n  name: k\nsourceSecretRef:\n  name: s\n" +
				"targetSecretRef:\n  name: t\n  namespace: apps\n",
			changed: []string{"spec.adopt"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			old := stored(t, test.kind, test.metadata, test.spec)
			before := old.DeepCopy()
			got := Convert(old)

			if diff := cmp.Diff(before, old); diff != "" {
				t.Errorf("the old object was changed: %s", diff)
			}

			wantFindings(t, "refused", test.refused, got.Refusals)
			wantFindings(t, "changed", test.changed, got.Changes)

			if len(test.refused) > 0 {
				if got.Object != nil {
					t.Error("refused, and there is an object all the same")
				}

				return
			}

			fields, err := written(got.Object)
			if err != nil {
				t.Fatal(err)
			}

			text, err := yaml.Marshal(fields["spec"])
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(test.want, string(text)); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

// wantFindings compares the beginnings of the findings, in order.
func wantFindings(t *testing.T, what string, want []string, got []Finding) {
	t.Helper()

	fits := len(want) == len(got)
	for i := range want {
		fits = fits && strings.HasPrefix(got[i].String(), want[i])
	}

	if !fits {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// The metadata keeps no UID, no finalizer, and nothing of the old operator or kubectl.
func TestConvertMetadata(t *testing.T) {
	got := Convert(stored(t, "OmniConnection", `, labels: {team: a, omni.texashpc.com/x: z, kustomize.toolkit.fluxcd.io/name: fleet},
  annotations: {note: x, omni.texashpc.com/reconcile-requested-at: now, kubectl.kubernetes.io/last-applied-configuration: "{}"},
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: keeper, uid: u1}, {apiVersion: omni.texashpc.com/v1alpha1, kind: OmniCluster, name: c, uid: u2}]`,
		`{endpoint: "https://omni.example.com", auth: {serviceAccountSecretRef: {name: key}}}`))

	wantFindings(t, "changed", []string{
		"metadata.labels[omni.texashpc.com/x]: goes", "metadata.annotations[omni.texashpc.com/reconcile-requested-at]: goes",
		"metadata.ownerReferences: that to OmniCluster c goes",
	}, got.Changes)

	fields, err := written(got.Object)
	if err != nil {
		t.Fatal(err)
	}

	want := map[string]any{
		"name": "one", "namespace": "team-a",
		"labels":          map[string]any{"team": "a", "kustomize.toolkit.fluxcd.io/name": "fleet"},
		"annotations":     map[string]any{"note": "x"},
		"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "keeper", "uid": "u1"}},
	}
	if diff := cmp.Diff(want, fields["metadata"]); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}

	if _, found := fields["status"]; found {
		t.Error("the status is written")
	}
}

func TestMissingReferencesAreNamed(t *testing.T) {
	connection := stored(t, "OmniConnection", "", `{endpoint: "https://omni.example.com", auth: {serviceAccountSecretRef: {name: key}}}`)
	connection.SetName("omni")

	all := ConvertAll([]unstructured.Unstructured{
		*connection, *stored(t, "OmniCluster", "", cluster+`}`),
		*stored(t, "OmniMachine", "", `{clusterRef: {name: gone}, machineID: 11111111-1111-4111-8111-111111111111}`),
	})

	if len(all[1].Warnings) > 0 || !cmp.Equal(all[2].Warnings, []string{"spec.clusterRef.name: there is no OmniCluster gone in the namespace"}) {
		t.Errorf("warnings %q and %q", all[1].Warnings, all[2].Warnings)
	}
}
