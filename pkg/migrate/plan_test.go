package migrate

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

var update = flag.Bool("update", false, "write the golden files anew")

// canary stands for a secret in a free-form block or a URL. No output for people may show it.
const canary = "s3cr3t-c4n4ry"

// stateOf reads a hub from a file: YAML documents.
func stateOf(t *testing.T, name string) *state {
	t.Helper()

	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}

	documents, err := foreign.Documents(t.Context(), text, foreign.Limits{Bytes: 1 << 20, Depth: 50, Nodes: 100_000, Expanded: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}

	s := &state{HubID: "hub"}

	for _, document := range documents {
		obj := unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(document); err != nil {
			t.Fatal(err)
		}

		switch obj.GetKind() {
		case "CustomResourceDefinition":
			s.Definitions = append(s.Definitions, obj)
		case "Deployment":
			s.Deployments = append(s.Deployments, obj)
		case "ValidatingWebhookConfiguration":
			s.Webhooks = append(s.Webhooks, obj)
		case "APIService":
			s.Registration = &obj
		default:
			s.Objects = append(s.Objects, obj)
		}
	}

	return s
}

// The complete output for people.
func TestPlanGolden(t *testing.T) {
	for _, name := range []string{"fleet", "refused", "collision"} {
		t.Run(name, func(t *testing.T) {
			s := stateOf(t, name+".yaml")
			if name == "fleet" {
				s.Owned = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "demo-kubeconfig"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "metrics-addon-manifest"}}}
				s.Namespaces = []string{"Namespace omni-cluster-operator-system is part of the old installation"}
				s.OtherWebhooks = []string{"ValidatingWebhookConfiguration policies"}
			}

			plan := planOf(s, nil)

			var out bytes.Buffer
			if err := plan.Print(&out); err != nil {
				t.Fatal(err)
			}

			if bytes.Contains(out.Bytes(), []byte(canary)) {
				t.Error("the plan shows a secret")
			}

			if refused := name != "fleet"; plan.Refused() != refused || (plan.Error() != nil) != refused {
				t.Errorf("refused: %t, %v", plan.Refused(), plan.Error())
			}

			golden := filepath.Join("testdata", name+".plan.txt")
			if *update {
				if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}

			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("(-want +got), or run with -update:\n%s", diff)
			}
		})
	}
}

// For Git the output is complete: one document for each object.
func TestManifests(t *testing.T) {
	text, err := planOf(stateOf(t, "fleet.yaml"), nil).Manifests()
	if err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{"---\napiVersion: omni.texashpc.com/v1alpha1\nkind: OmniConnection\n", "token: " + canary, "takeOwnership: true"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}

	if bytes.Contains(text, []byte("status:")) || bytes.Contains(text, []byte("uid:")) || bytes.Contains(text, []byte("finalizers:")) {
		t.Errorf("more than can be applied:\n%s", text)
	}
}

func TestWhoseWebhook(t *testing.T) {
	const rules = `webhooks: [{name: a, rules: [{apiGroups: [%s], resources: ["*"]}]}]`

	for name, test := range map[string]struct {
		metadata, groups string
		theirs, named    bool
	}{
		"by label":             {`{name: x, labels: {app.kubernetes.io/name: omni-cluster-operator}}`, "omni.texashpc.com", true, true},
		"by name":              {`{name: fleet-omni-cluster-operator-validating-webhook-configuration}`, "omni.texashpc.com", true, true},
		"of a policy engine":   {`{name: kyverno-resource-validating-webhook-cfg}`, "omni.texashpc.com", false, true},
		"of several groups":    {`{name: omni-cluster-operator-validating-webhook-configuration}`, "omni.texashpc.com, apps", false, true},
		"of everything":        {`{name: x, labels: {app.kubernetes.io/name: omni-cluster-operator}}`, `"*"`, false, false},
		"of somebody else":     {`{name: x}`, "apps", false, false},
		"labelled, other kind": {`{name: x, labels: {app.kubernetes.io/name: omni-cluster-operator}}`, "apps", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			theirs, named := webhookIsTheirs(parsed(t, "kind: ValidatingWebhookConfiguration\nmetadata: "+test.metadata+"\n"+
				string(bytes.ReplaceAll([]byte(rules), []byte("%s"), []byte(test.groups)))))
			if theirs != test.theirs || named != test.named {
				t.Errorf("theirs %t, named %t", theirs, named)
			}
		})
	}
}
