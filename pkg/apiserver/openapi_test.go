package apiserver_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// maxOpenAPI is the size that clients with small limits still load, with a document without the types of core/v1 as
// the reference.
const maxOpenAPI = 400_000

var kinds = []string{
	"OmniConnection", "OmniCluster", "OmniControlPlane", "OmniWorkers", "OmniMachine",
	"OmniKubeconfigExport", "OmniSecretSync", "OmniHelmRelease", "OmniRolloutPolicy",
}

func TestOpenAPI(t *testing.T) {
	s := startServer(t)

	t.Run("v2", func(t *testing.T) {
		document := s.openAPI(t, "/openapi/v2", maxOpenAPI)
		checkReferences(t, document)
		checkKinds(t, document["definitions"].(map[string]any))
		checkPaths(t, document["paths"].(map[string]any))
	})

	t.Run("v3", func(t *testing.T) {
		document := s.openAPI(t, "/openapi/v3/apis/omni.texashpc.com/v1alpha1", maxOpenAPI)
		checkReferences(t, document)
		checkKinds(t, document["components"].(map[string]any)["schemas"].(map[string]any))
		checkPaths(t, document["paths"].(map[string]any))
	})
}

func (s *server) openAPI(t *testing.T, path string, limit int) map[string]any {
	t.Helper()

	status, body := s.get(t, path, "application/json")
	if status != http.StatusOK {
		t.Fatalf("%s: status %d: %s", path, status, body)
	}

	t.Logf("%s has %d bytes", path, len(body))

	if len(body) > limit {
		t.Errorf("%s has %d bytes, more than %d", path, len(body), limit)
	}

	var document map[string]any
	if err := json.Unmarshal(body, &document); err != nil {
		t.Fatal(err)
	}

	return document
}

// checkReferences resolves every $ref of a document: one that leads nowhere makes clients discard the
// document of the whole cluster.
func checkReferences(t *testing.T, document map[string]any) {
	t.Helper()

	count := 0

	walk(document, func(key string, value any) {
		reference, ok := value.(string)
		if key != "$ref" || !ok {
			return
		}

		count++

		if !resolves(document, reference) {
			t.Errorf("%s leads nowhere", reference)
		}
	})

	if count == 0 {
		t.Error("no references at all")
	}
}

func walk(value any, visit func(key string, value any)) {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			visit(key, child)
			walk(child, visit)
		}
	case []any:
		for _, child := range value {
			walk(child, visit)
		}
	}
}

func resolves(document map[string]any, reference string) bool {
	path, ok := strings.CutPrefix(reference, "#/")
	if !ok {
		return false
	}

	var current any = document

	for _, step := range strings.Split(path, "/") {
		fields, ok := current.(map[string]any)
		if !ok {
			return false
		}

		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		if current, ok = fields[step]; !ok {
			return false
		}
	}

	return true
}

// checkKinds finds the schema of every kind by its group, version and kind, with a description for
// every field of its spec and status.
func checkKinds(t *testing.T, schemas map[string]any) {
	t.Helper()

	for _, kind := range kinds {
		schema, ok := schemas["com.texashpc.omni.v1alpha1."+kind].(map[string]any)
		if !ok {
			t.Errorf("no schema of %s", kind)

			continue
		}

		for _, part := range []string{"Spec", "Status"} {
			fields, ok := schemas["com.texashpc.omni.v1alpha1."+kind+part].(map[string]any)
			if !ok {
				t.Errorf("no schema of %s%s", kind, part)

				continue
			}

			checkDescriptions(t, kind+part, fields["properties"].(map[string]any))
		}

		identity, err := json.Marshal(schema["x-kubernetes-group-version-kind"])
		if want := `[{"group":"omni.texashpc.com","kind":"` + kind + `","version":"v1alpha1"}]`; err != nil || string(identity) != want {
			t.Errorf("%s is %s, %v, want %s", kind, identity, err, want)
		}
	}
}

func checkDescriptions(t *testing.T, owner string, properties map[string]any) {
	t.Helper()

	for name, property := range properties {
		if description, _ := property.(map[string]any)["description"].(string); description == "" {
			t.Errorf("%s.%s has no description", owner, name)
		}
	}
}

func checkPaths(t *testing.T, paths map[string]any) {
	t.Helper()

	const root = "/apis/omni.texashpc.com/v1alpha1/namespaces/{namespace}/"

	for _, path := range []string{
		"omniclusters", "omniclusters/{name}", "omniclusters/{name}/status", "omniclusters/{name}/template",
		"omnicontrolplanes/{name}/scale", "omniworkers/{name}/scale", "omnihelmreleases/{name}/status",
	} {
		if _, ok := paths[root+path]; !ok {
			t.Errorf("no path %s", root+path)
		}
	}

	// How clients find out that the server validates fields.
	patch := paths[root+"omniclusters/{name}"].(map[string]any)["patch"].(map[string]any)
	if !slices.ContainsFunc(patch["parameters"].([]any), func(parameter any) bool {
		fields := parameter.(map[string]any)

		return fields["name"] == "fieldValidation" && fields["description"] != "" || fields["$ref"] == "#/parameters/fieldValidation-KzD1P98M"
	}) {
		t.Errorf("a patch has the parameters %v", patch["parameters"])
	}
}
