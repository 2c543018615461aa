package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// frozenDir has, by version, what earlier charts rendered and what earlier programs stored; hack/freeze.sh wrote it.
const frozenDir = root + "/test/testdata/frozen"

// frozenSet is what a chart of before rendered from a set of values.
type frozenSet struct{ name, values, rendered string }

// frozenSets returns those of all versions.
func frozenSets(t *testing.T) []frozenSet {
	t.Helper()

	paths, err := filepath.Glob(filepath.Join(frozenDir, "*", "rendered", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("nothing is frozen: %v", err)
	}

	var sets []frozenSet

	for _, path := range paths {
		version := filepath.Dir(filepath.Dir(path))
		values := filepath.Join(version, "values", filepath.Base(path))
		sets = append(sets, frozenSet{
			name:   filepath.Base(version) + "/" + strings.TrimSuffix(filepath.Base(path), ".yaml"),
			values: read(t, values), rendered: read(t, path),
		})
	}

	return sets
}

// frozenVersions are the directories of frozenDir.
func frozenVersions(t *testing.T) []string {
	t.Helper()

	entries, err := os.ReadDir(frozenDir)
	if err != nil {
		t.Fatal(err)
	}

	var versions []string

	for _, entry := range entries {
		versions = append(versions, filepath.Join(frozenDir, entry.Name()))
	}

	return versions
}

// immutable are the fields, by kind, that Kubernetes refuses to change, and those whose change would leave a thing of the
// user's behind: a Secret, a claim, the address that others call.
func immutable() map[string][][]string {
	workload := [][]string{{"spec", "selector"}}

	return map[string][][]string{
		"Deployment": workload,
		"StatefulSet": append(workload, []string{"spec", "serviceName"}, []string{"spec", "podManagementPolicy"},
			[]string{"spec", "volumeClaimTemplates"}, []string{"spec", "persistentVolumeClaimRetentionPolicy"}),
		"Service":             {{"spec", "clusterIP"}, {"spec", "selector"}, {"spec", "ports"}},
		"Secret":              {{"type"}},
		"Certificate":         {{"spec", "secretName"}, {"spec", "dnsNames"}, {"spec", "issuerRef"}},
		"RoleBinding":         {{"roleRef"}},
		"ClusterRoleBinding":  {{"roleRef"}},
		"APIService":          {{"spec", "service"}},
		"PodDisruptionBudget": {{"spec", "selector"}},
	}
}

// TestFrozenNames: with the values of before, the chart renders every object of before under its name, with the fields that
// cannot change as they were.
func TestFrozenNames(t *testing.T) {
	for _, set := range frozenSets(t) {
		t.Run(set.name, func(t *testing.T) {
			now := map[string]*unstructured.Unstructured{}
			for _, object := range decode(t, stream(mustRender(t, set.values))) {
				now[identity(object)] = object
			}

			for _, before := range decode(t, set.rendered) {
				after := now[identity(before)]
				if after == nil {
					t.Errorf("%s is not rendered any more", identity(before))

					continue
				}

				for _, path := range immutable()[before.GetKind()] {
					want, _, _ := unstructured.NestedFieldNoCopy(before.Object, path...)
					got, _, _ := unstructured.NestedFieldNoCopy(after.Object, path...)

					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s of %s; -before +now:\n%s", strings.Join(path, "."), identity(before), diff)
					}
				}
			}
		})
	}
}
