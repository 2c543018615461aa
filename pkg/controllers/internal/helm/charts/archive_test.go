package charts

import "testing"

func TestIsSubchart(t *testing.T) {
	for name, want := range map[string]bool{
		"demo/charts/inner.tgz":            true,
		"demo/charts/a/charts/inner.tgz":   true,
		"demo/charts/./inner.tgz":          true,
		`demo\charts\inner.tgz`:            true, // as Helm reads it
		`demo/x\charts/inner.tgz`:          true,
		"demo/charts/inner/Chart.yaml":     false,
		"demo/files/inner.tgz":             false,
		"demo/charts/inner/files/data.tgz": false,
	} {
		if got := isSubchart(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
