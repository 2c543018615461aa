package deploy

import (
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/engine"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
)

// cluster is what `lookup` finds.
type cluster struct{ dynamic.Interface }

// GetClientFor implements engine.ClientProvider.
func (c cluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	resource, _ := apimeta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(apiVersion, kind))

	return c.Resource(resource), true, nil
}

// clusterWith is a cluster with the controllers of values, each with so many replicas.
func clusterWith(t *testing.T, values string, replicas int64) cluster {
	t.Helper()

	var found []runtime.Object

	for _, object := range decode(t, mustRender(t, values)["controller.yaml"]) {
		if err := unstructured.SetNestedField(object.Object, replicas, "spec", "replicas"); err != nil {
			t.Fatal(err)
		}

		found = append(found, object)
	}

	return cluster{dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "apps", Version: "v1", Resource: "deployments"}: "DeploymentList", {Group: "apps", Version: "v1", Resource: "statefulsets"}: "StatefulSetList",
	}, found...)}
}

// TestOtherControllers: an upgrade starts no controller beside one that looks at the same objects and has its lease
// elsewhere. Leases are in the namespace that is served, or in the release's if all are.
func TestOtherControllers(t *testing.T) {
	const (
		all    = `controller: {allNamespaces: true}`
		teams  = `controller: {namespaces: [team-a, team-b]}`
		own    = `controller: {namespaces: [` + namespace + `]}`
		shards = `controller: {namespaces: [` + namespace + `, team-a]}`
		other  = `controller: {namespaces: [team-c]}`
	)

	for name, test := range map[string]struct {
		before, after string
		replicas      int64
		want          string // in the error; empty: there is none
	}{
		"from some to all":                  {teams, all, 2, "Deployment omni-controller-team-a serves the namespace team-a"},
		"from all to some":                  {all, teams, 2, "Deployment omni-controller serves all namespaces"},
		"from all to some and the own":      {all, shards, 1, "Deployment omni-controller serves all namespaces"},
		"from some and the own to all":      {shards, all, 1, "Deployment omni-controller-team-a serves the namespace team-a"},
		"from some to all, scaled to 0":     {teams, all, 0, ""},
		"from all to some, scaled to 0":     {all, teams, 0, ""},
		"from the own to all: one lease":    {own, all, 2, ""},
		"from all to the own: one lease":    {all, own, 2, ""},
		"from the own to others":            {own, teams, 2, ""},
		"from some to others":               {teams, other, 2, ""},
		"the same":                          {teams, teams, 2, ""},
		"the same for all":                  {all, all, 2, ""},
		"from some to all with other names": {teams, all + "\nfullnameOverride: mine", 2, "Deployment omni-controller-team-a serves"},
	} {
		found := clusterWith(t, test.before, test.replicas)

		_, err := renderBy(func(chart chart.Charter, values common.Values) (map[string]string, error) {
			return engine.RenderWithClientProvider(chart, values, found)
		}, release, namespace, test.after)

		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestNotesOfUnservedNamespaces: an upgrade that takes the controller of a namespace away says so. Objects there tell nobody.
func TestNotesOfUnservedNamespaces(t *testing.T) {
	const (
		teams  = `controller: {namespaces: [team-a, team-b]}`
		shards = `controller: {namespaces: [` + namespace + `, team-a]}`
	)

	for name, test := range map[string]struct {
		before, after string
		want          []string
	}{
		"from the default to teams":        {"", teams, []string{namespace}},
		"from teams to the default":        {teams, "", []string{"team-a", "team-b"}},
		"one leaves":                       {teams, `controller: {namespaces: [team-b]}`, []string{"team-a"}},
		"from the own to all":              {"", `controller: {allNamespaces: true}`, nil},
		"from all to the own":              {`controller: {allNamespaces: true}`, "", nil},
		"one comes":                        {"", shards, nil},
		"the same":                         {shards, shards, nil},
		"one leaves, and all names change": {shards, "fullnameOverride: mine", []string{"team-a"}},
	} {
		found := clusterWith(t, test.before, 2)

		files, err := renderBy(func(chart chart.Charter, values common.Values) (map[string]string, error) {
			return engine.RenderWithClientProvider(chart, values, found)
		}, release, namespace, test.after)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}

		var got []string

		for line := range strings.Lines(files["NOTES.txt"]) {
			if served, ok := strings.CutPrefix(line, "  kubectl get omni --namespace "); ok {
				got = append(got, strings.TrimSpace(served))
			}
		}

		if !slices.Equal(got, test.want) {
			t.Errorf("%s: namespaces %v, want %v in\n%s", name, got, test.want, files["NOTES.txt"])
		}
	}
}
