package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// What Argo CD applies is what it finds: no default, no other spelling of a duration and no controller
// makes a difference to Git, whether it applies on the client's or on the server's side.
func TestGitAndLiveObjectsDoNotDiffer(t *testing.T) {
	t.Parallel()

	for name, flags := range map[string][]string{
		"client side": nil,
		"server side": {"--server-side", "--field-manager=argocd-controller"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := newArgoFleet(t)

			path := filepath.Join(t.TempDir(), "git.yaml")
			if err := os.WriteFile(path, []byte(strings.Join(append(examples(t), f.unusual()...), "\n---\n")), 0o600); err != nil {
				t.Fatal(err)
			}

			f.run(append([]string{"apply", "-f", path}, flags...)...)
			f.wait("the controllers to have written what they write", func() error {
				if out := f.run("get", "ocl", "spelled", "-o", "jsonpath={.metadata.finalizers}{.status.conditions}"); !strings.Contains(out, "finalizer") {
					return fmt.Errorf("%s", out)
				}

				return nil
			})
			f.observed()

			// Exit code 1 says that there is a difference. kubectl also shows what changed between its two requests,
			// as a status may; what is different from Git is so every time.
			f.wait("no difference", func() error {
				out, err := f.try(append([]string{"diff", "-f", path}, flags...)...)
				if err != nil {
					return fmt.Errorf("%w\n%s", err, out)
				}

				return nil
			})

			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}

			for document := range strings.SplitSeq(string(text), "\n---\n") {
				f.wantAsWritten(document)
			}
		})
	}
}

// unusual has what servers like to spell anew or to add: durations, numbers, empty lists, and what elements of lists do not say.
func (f *argoFleet) unusual() []string {
	return []string{
		clusterManifest("spelled", "  syncInterval: 90m", "  systemExtensions: []", "  features: {backupConfiguration: {interval: 24h}}",
			"  patches: [{name: numbers, inline: {machine: {sysctls: {a: '1.0', b: '0644'}, kubelet: {extraConfig: {maxPods: 200}}}}}]"),
		strings.Replace(clusterManifest("unsaid"), "version: v1.35.1",
			"version: v1.35.1\n    manifests: [{name: m, inline: [{apiVersion: v1, kind: Namespace, metadata: {name: m}}]}]", 1),
		`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniHelmRelease
metadata: {name: unsaid}
spec:
  clusterRef: {name: unsaid}
  kubeconfigSecretRef: {name: unsaid}
  chart: {repository: https://charts.example.com, chart: podinfo, version: 1.0.0, valuesFrom: [{kind: ConfigMap, name: v}]}`,
		workersManifest("spelled-w", "spelled", classOf(pool, "unlimited")),
	}
}

// wantAsWritten checks that every value of the manifest is in the live object, spelled the same.
func (f *argoFleet) wantAsWritten(manifest string) {
	f.t.Helper()

	var written map[string]any
	if err := yaml.Unmarshal([]byte(manifest), &written); err != nil {
		f.t.Fatal(err)
	}

	kind := strings.ToLower(written["kind"].(string))
	name := written["metadata"].(map[string]any)["name"].(string)

	var live map[string]any
	if err := json.Unmarshal([]byte(f.run("get", kind, name, "-o", "json")), &live); err != nil {
		f.t.Fatal(err)
	}

	if diff := cmp.Diff(written["spec"], common(written["spec"], live["spec"])); diff != "" {
		f.t.Errorf("%s %s, -in Git +live\n%s", kind, name, diff)
	}
}

// common leaves out of live what written does not have, but in lists: who merges patches replaces a list as a whole, as Argo CD does.
func common(written, live any) any {
	wanted, isMap := written.(map[string]any)
	found, isToo := live.(map[string]any)

	if isMap && isToo {
		kept := map[string]any{}

		for key, value := range wanted {
			if has, ok := found[key]; ok {
				kept[key] = common(value, has)
			}
		}

		return kept
	}

	return live
}

// examples are the manifests of artifacts/examples, of all nine kinds, for the namespace of the test.
func examples(t *testing.T) []string {
	t.Helper()

	root, err := env.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}

	paths, err := filepath.Glob(filepath.Join(root, "artifacts", "examples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	var manifests []string

	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		for document := range strings.SplitSeq(string(text), "\n---\n") {
			if !strings.Contains(document, "\nkind: OmniConnection\n") {
				manifests = append(manifests, strings.ReplaceAll(document, "\n  namespace: omni-cluster-operator-system\n", "\n"))
			}
		}
	}

	return manifests
}
