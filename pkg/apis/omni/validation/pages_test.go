package validation

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// TestManifestsOnPages: the examples on the pages of the kinds, and the listed objects on other pages, cause neither
// an error nor a warning.
func TestManifestsOnPages(t *testing.T) {
	pages := map[string]int{
		"docs/how-to/extensions.md": 2,
	}

	for kind, examples := range map[string]int{
		"omniconnection": 1, "omnicluster": 1, "omnicontrolplane": 1, "omniworkers": 2, "omnimachine": 1,
		"omnikubeconfigexport": 1, "omnisecretsync": 1, "omnihelmrelease": 2,
	} {
		pages["docs/reference/"+kind+".md"] = examples
	}

	for page, want := range pages {
		t.Run(page, func(t *testing.T) {
			objects := objectsOn(t, page)
			if len(objects) != want {
				t.Errorf("%d objects, want %d", len(objects), want)
			}

			for _, text := range objects {
				// A page leaves the choice of the namespace to its reader.
				placed := strings.Replace(text, "\nmetadata:\n", "\nmetadata:\n  namespace: omni\n", 1)

				file := filepath.Join(t.TempDir(), "object.yaml")
				if err := os.WriteFile(file, []byte(placed), 0o600); err != nil {
					t.Fatal(err)
				}

				if errs, warnings := check(t, loadAny(t, file)); len(errs) > 0 || len(warnings) > 0 {
					t.Errorf("%s\n%v %v", text, errs, warnings)
				}
			}
		})
	}
}

// TestNamespacesOnPages: an object of a page is in the namespace that a default installation serves, or the page says how another
// one is served. Elsewhere it would stay Pending.
func TestNamespacesOnPages(t *testing.T) {
	const served = "omni-cluster-operator-system"

	pages, err := filepath.Glob("../../../../docs/*/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}

	placed := regexp.MustCompile(`(?m)^metadata:\n(?:  .*\n)*?  namespace: (\S+)`)

	for _, path := range pages {
		page := strings.TrimPrefix(filepath.ToSlash(path), "../../../../")

		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		for _, object := range objectsOn(t, page) {
			found := placed.FindStringSubmatch(object)
			if found != nil && found[1] != served && !strings.Contains(string(text), "controller.namespaces") {
				t.Errorf("%s: nobody serves the namespace %s of\n%s", page, found[1], object)
			}
		}
	}
}

// objectsOn are the objects of our kinds in the YAML blocks of a page.
func objectsOn(t *testing.T, page string) []string {
	t.Helper()

	text, err := os.ReadFile(filepath.Join("../../../..", filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}

	var objects []string

	for _, part := range strings.Split(string(text), "\n```yaml\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")

		for document := range strings.SplitSeq(block, "\n---\n") {
			if strings.Contains(document, "apiVersion: "+v1alpha1.SchemeGroupVersion.String()) {
				objects = append(objects, document)
			}
		}
	}

	return objects
}
