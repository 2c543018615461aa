package argocd

import (
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// The ConfigMap is what people apply: it holds the script that is tested, for all kinds.
func TestConfigMapHoldsTheScript(t *testing.T) {
	root, err := env.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}

	script, err := Load()
	if err != nil {
		t.Fatal(err)
	}

	text, err := os.ReadFile(filepath.Join(root, "artifacts", "argocd", "argocd-cm.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	settings := &corev1.ConfigMap{}
	if err := yaml.UnmarshalStrict(text, settings); err != nil {
		t.Fatal(err)
	}

	if settings.Name != "argocd-cm" || len(settings.Data) != 1 {
		t.Errorf("%s with %d entries: it would replace settings that are not ours", settings.Name, len(settings.Data))
	}

	var customizations map[string]map[string]string
	if err := yaml.UnmarshalStrict([]byte(settings.Data["resource.customizations"]), &customizations); err != nil {
		t.Fatal(err)
	}

	const pattern = "omni.texashpc.com/*"

	if diff := cmp.Diff(map[string]map[string]string{pattern: {"health.lua": script.text}}, customizations); diff != "" {
		t.Errorf("argocd-cm.yaml and health.lua differ, -health.lua +argocd-cm.yaml\n%s", diff)
	}

	for _, kind := range kinds() {
		if matched, err := path.Match(pattern, "omni.texashpc.com/"+kind); err != nil || !matched {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
