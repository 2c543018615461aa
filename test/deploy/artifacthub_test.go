package deploy

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// hubNotes are the annotations of Artifact Hub that hold YAML, as what they have to be.
type hubNotes struct {
	kinds           []struct{ Kind, Version, Name, DisplayName, Description string }
	links           []struct{ Name, URL string }
	recommendations []struct{ URL string }
}

// TestArtifactHub: what Artifact Hub reads is in its form, and names each kind that is served.
func TestArtifactHub(t *testing.T) {
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}

	var notes hubNotes

	texts := chart.Metadata.Annotations
	for name, value := range map[string]any{"crds": &notes.kinds, "links": &notes.links, "recommendations": &notes.recommendations} {
		if err := yaml.UnmarshalStrict([]byte(texts["artifacthub.io/"+name]), value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	// It knows these and no others.
	allowed := map[string][]string{
		"category": {
			"ai-machine-learning", "database", "integration-delivery", "monitoring-logging", "networking", "security", "storage",
			"streaming-messaging", "skip-prediction",
		},
		"license":              {"Apache-2.0"},
		"operator":             {"true"},
		"operatorCapabilities": {"Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"},
	}
	for name, values := range allowed {
		if got := texts["artifacthub.io/"+name]; !slices.Contains(values, got) {
			t.Errorf("%s is %q", name, got)
		}
	}

	if want := 3 + len(allowed); len(texts) != want {
		t.Errorf("there are %d annotations, and %d are looked at", len(texts), want)
	}

	if !strings.Contains(read(t, root+"/LICENSE"), "Apache License") {
		t.Error("the license is another one")
	}

	got := map[string]string{}
	for _, kind := range notes.kinds {
		got[kind.Kind] = kind.Name + " " + kind.Version

		if kind.DisplayName == "" || kind.Description == "" {
			t.Errorf("%s says nothing of itself", kind.Kind)
		}
	}

	if diff := cmp.Diff(servedKinds(t), got); diff != "" {
		t.Errorf("kinds; -served +named:\n%s", diff)
	}
}

// servedKinds are the kinds of the API with the names that custom resource definitions of them would have, and their version.
func servedKinds(t *testing.T) map[string]string {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	kinds := maps.Clone(scheme.KnownTypes(v1alpha1.SchemeGroupVersion))
	maps.DeleteFunc(kinds, func(name string, _ reflect.Type) bool {
		return !strings.HasPrefix(name, "Omni") || strings.HasSuffix(name, "List")
	})

	names := map[string]string{}
	for kind := range kinds {
		plural, _ := apimeta.UnsafeGuessKindToResource(v1alpha1.SchemeGroupVersion.WithKind(strings.TrimSuffix(kind, "s")))
		names[kind] = plural.Resource + "." + v1alpha1.GroupName + " " + v1alpha1.SchemeGroupVersion.Version
	}

	return names
}
