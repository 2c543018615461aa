package drift

import "testing"

func TestWhose(t *testing.T) {
	const helm = "Helm"

	for name, test := range map[string]struct {
		managed, release, namespace string
		ours                        bool
		other                       string
	}{
		"no marks":              {},
		"all of ours":           {helm, "demo", "apps", true, ""},
		"without the label":     {"", "demo", "apps", false, ""},
		"half of ours":          {helm, "demo", "", false, ""},
		"another release":       {helm, "another", "apps", false, "apps/another"},
		"another namespace":     {helm, "demo", "others", false, "others/demo"},
		"half of another's":     {helm, "another", "", false, "apps/another"},
		"another's, no label":   {"", "another", "others", false, "others/another"},
		"its namespace is left": {"", "", "others", false, "others/demo"},
	} {
		ours, other := Release{Name: "demo", Namespace: "apps"}.Whose(map[string]any{"metadata": map[string]any{
			"labels":      map[string]any{managedByLabel: test.managed},
			"annotations": map[string]any{releaseAnnotation: test.release, namespaceAnnotation: test.namespace},
		}})
		if ours != test.ours || other != test.other {
			t.Errorf("%s: %v, %q, want %v, %q", name, ours, other, test.ours, test.other)
		}
	}
}
