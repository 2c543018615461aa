package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// What the API says of itself, through the aggregator.

const (
	// maxOpenAPI is what clients with small limits still load, of our own document.
	maxOpenAPI = 400_000
	// fastDiscovery is far more than discovery needs, and far less than a time-out of a storage.
	fastDiscovery = 2 * time.Second
	openAPIV3Path = "/openapi/v3/apis/omni.texashpc.com/v1alpha1"
)

// raw reads a path of a server as its own client does.
func raw(t *testing.T, host, path, accept string) []byte {
	t.Helper()

	config := stack.RESTConfig()
	config.Host = host

	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}

	body, err := client.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", accept).DoRaw(t.Context())
	if err != nil {
		t.Fatalf("%s: %v: %s", path, err, body)
	}

	return body
}

func document(t *testing.T, body []byte) map[string]any {
	t.Helper()

	var decoded map[string]any
	if err := json.Unmarshal(body, &decoded); err != nil {
		t.Fatal(err)
	}

	return decoded
}

// The documents are our own, and the whole hub's with ours merged in: a reference in it that leads nowhere
// breaks every client of the hub.
func TestOpenAPIDocuments(t *testing.T) {
	t.Parallel()

	ours := raw(t, stack.OmniAPIServer.URL(), "/openapi/v2", "application/json")
	merged := raw(t, stack.Hub.URL(), "/openapi/v2", "application/json")
	third := raw(t, stack.Hub.URL(), openAPIV3Path, "application/json")
	t.Logf("OpenAPI v2: ours %d bytes, the whole hub's %d; v3: ours %d", len(ours), len(merged), len(third))

	for version, size := range map[string]int{"v2": len(ours), "v3": len(third)} {
		if size > maxOpenAPI {
			t.Errorf("OpenAPI %s has %d bytes, more than %d", version, size, maxOpenAPI)
		}
	}

	for name, body := range map[string][]byte{"v2": ours, "v2 of the hub": merged, "v3": third} {
		decoded := document(t, body)

		references := map[string]bool{}
		collectReferences(decoded, references)

		if len(references) < 50 {
			t.Errorf("%s: %d references only", name, len(references))
		}

		for reference := range references {
			if !resolves(decoded, reference) {
				t.Errorf("%s: %s leads nowhere", name, reference)
			}
		}
	}

	definitions := document(t, merged)["definitions"].(map[string]any)
	for _, k := range subjects {
		if _, there := definitions["com.texashpc.omni.v1alpha1."+k.kind]; !there {
			t.Errorf("the hub's document does not have %s", k.kind)
		}
	}
}

func collectReferences(value any, found map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			if reference, ok := child.(string); ok && key == "$ref" {
				found[reference] = true
			}

			collectReferences(child, found)
		}
	case []any:
		for _, child := range value {
			collectReferences(child, found)
		}
	}
}

func resolves(document map[string]any, reference string) bool {
	var current any = document

	for _, step := range strings.Split(strings.TrimPrefix(reference, "#/"), "/") {
		fields, ok := current.(map[string]any)
		if !ok {
			return false
		}

		if current, ok = fields[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]; !ok {
			return false
		}
	}

	return true
}

// Discovery is asked by every client of the hub, with all groups at once and in the old way, resource by
// resource.
func TestDiscoveryOfEveryKind(t *testing.T) {
	t.Parallel()

	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

	for name, host := range map[string]string{"through the hub": stack.Hub.URL(), "directly": stack.OmniAPIServer.URL()} {
		if took := fastest(fastDiscovery, func() time.Duration {
			begin := time.Now()
			raw(t, host, "/apis", aggregated)

			return time.Since(begin)
		}); took > fastDiscovery {
			t.Errorf("%s: took %s", name, took)
		}

		// The hub calls a group stale until its next look, if it was too busy for one.
		(&space{t: t}).wait("the group "+name, func() error {
			var groups apidiscoveryv2.APIGroupDiscoveryList
			if err := json.Unmarshal(raw(t, host, "/apis", aggregated), &groups); err != nil {
				return err
			}

			return checkAggregated(groups)
		})

		var old metav1.APIResourceList
		if err := json.Unmarshal(raw(t, host, "/apis/omni.texashpc.com/v1alpha1", "application/json"), &old); err != nil {
			t.Fatal(err)
		}

		// Every kind with its status, two scales, one template.
		if len(old.APIResources) != 2*len(subjects)+3 {
			t.Errorf("%s: %d resources", name, len(old.APIResources))
		}
	}
}

// fastest is the shortest of a few times, of which the first within the limit is enough: a busy machine makes some
// longer, and what is slow by itself is slow every time.
func fastest(limit time.Duration, try func() time.Duration) time.Duration {
	best := try()

	for range 4 {
		if best <= limit {
			break
		}

		best = min(best, try())
	}

	return best
}

func checkAggregated(groups apidiscoveryv2.APIGroupDiscoveryList) error {
	index := slices.IndexFunc(groups.Items, func(group apidiscoveryv2.APIGroupDiscovery) bool { return group.Name == "omni.texashpc.com" })
	if index < 0 || len(groups.Items[index].Versions) != 1 || groups.Items[index].Versions[0].Freshness != apidiscoveryv2.DiscoveryFreshnessCurrent {
		return errors.New("it is not there, or stale")
	}

	all := "create,delete,deletecollection,get,list,patch,update,watch"

	for _, k := range subjects {
		resources := groups.Items[index].Versions[0].Resources

		found := slices.IndexFunc(resources, func(resource apidiscoveryv2.APIResourceDiscovery) bool { return resource.Resource == k.resource })
		if found < 0 {
			return fmt.Errorf("no %s", k.resource)
		}

		resource := resources[found]
		sort.Strings(resource.Verbs)

		if got := strings.Join(resource.Verbs, ","); got != all || resource.ResponseKind.Kind != k.kind || resource.Scope != apidiscoveryv2.ScopeNamespace {
			return fmt.Errorf("%s: verbs %s, kind %s, scope %s", k.resource, got, resource.ResponseKind.Kind, resource.Scope)
		}
	}

	return nil
}

// Free-form blocks are objects whose fields are kept, and never maps of anything: clients of the schema
// (kubectl, Argo CD, server-side apply) would take their fields apart otherwise.
func TestFreeFormInTheSchema(t *testing.T) {
	t.Parallel()

	third := document(t, raw(t, stack.Hub.URL(), openAPIV3Path, "application/json"))

	schema, ok := third["components"].(map[string]any)["schemas"].(map[string]any)["com.texashpc.omni.v1alpha1.FreeForm"].(map[string]any)
	if !ok || schema["type"] != "object" || schema["x-kubernetes-preserve-unknown-fields"] != true || schema["additionalProperties"] != nil {
		t.Errorf("FreeForm is %v", schema)
	}

	var wrong []string

	walkMaps(third, "", func(path string, fields map[string]any) {
		if fields["additionalProperties"] == true {
			wrong = append(wrong, path)
		}
	})

	if len(wrong) > 0 {
		t.Errorf("maps of anything: %s", fmt.Sprint(wrong))
	}
}

func walkMaps(value any, path string, visit func(path string, fields map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		visit(path, value)

		for key, child := range value {
			walkMaps(child, path+"/"+key, visit)
		}
	case []any:
		for _, child := range value {
			walkMaps(child, path, visit)
		}
	}
}
