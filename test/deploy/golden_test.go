package deploy

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"sigs.k8s.io/yaml"
)

// TestGolden shows every change of what is installed in a review.
func TestGolden(t *testing.T) {
	for name, values := range valueSets(t) {
		t.Run(name, func(t *testing.T) {
			got := stream(mustRender(t, values))
			path := filepath.Join("testdata", "golden", name+".yaml")

			if *update {
				write(t, path, got)
			}

			if diff := cmp.Diff(read(t, path), got); diff != "" {
				t.Errorf("the chart renders something else (-update writes it); -want +got:\n%s", diff)
			}
		})
	}
}

// TestLint is `helm lint --strict` for every set of values.
func TestLint(t *testing.T) {
	for name, text := range valueSets(t) {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{}
			if err := yaml.Unmarshal([]byte(text), &values); err != nil {
				t.Fatal(err)
			}

			for _, message := range lint.RunAll(chartDir, values, namespace).Messages {
				// An icon is for catalogues.
				if message.Severity > support.InfoSev {
					t.Error(message)
				}
			}
		})
	}
}

// TestNeverRendered: cert-manager's cainjector owns caBundle, and a mutable or foreign field would let
// two writers fight.
func TestNeverRendered(t *testing.T) {
	for name, values := range valueSets(t) {
		text := stream(mustRender(t, values))

		for _, line := range strings.Split(text, "\n") {
			code, _, _ := strings.Cut(line, "#")
			for _, never := range []string{"caBundle", "insecureSkipTLSVerify", "hostNetwork", "privileged: true", "<no value>"} {
				if strings.Contains(code, never) {
					t.Errorf("%s renders %q", name, line)
				}
			}
		}
	}
}

// TestOneStorage: the API server is a StatefulSet with a volume or a Deployment on an external etcd,
// never both and never neither.
func TestOneStorage(t *testing.T) {
	for name, want := range map[string]string{
		"default": "StatefulSet", "external-etcd": "Deployment", "all-namespaces": "StatefulSet", "everything": "StatefulSet",
	} {
		objects := decode(t, stream(mustRender(t, valueSets(t)[name])))

		var kinds []string

		for _, object := range objects {
			if object.GetName() == "omni-apiserver" && (object.GetKind() == "StatefulSet" || object.GetKind() == "Deployment") {
				kinds = append(kinds, object.GetKind())
			}
		}

		if diff := cmp.Diff([]string{want}, kinds); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
