package helmlive

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// asJSON makes a configuration whose requests ask for JSON only, as package clusteraccess has them ask.
func asJSON(config *rest.Config) *rest.Config {
	copied := rest.CopyConfig(config)
	copied.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			asked := request.Clone(request.Context())
			if asked.Header.Get("Accept") != "" {
				asked.Header.Set("Accept", "application/json")
			}

			return next.RoundTrip(asked)
		})
	})

	return copied
}

// twoItems is a chart that renders one list of ConfigMaps.
func twoItems(version, kind, second string) string {
	item := func(name string) string {
		return "- {apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}, data: {version: " + version + "}}\n"
	}

	return "apiVersion: v1\nkind: " + kind + "\nitems:\n" + item("first") + item(second)
}

// A chart may render a list: its items are installed, compared, replaced and removed like other objects.
func TestAList(t *testing.T) {
	for _, kind := range []string{"ConfigMapList", "List"} {
		t.Run(kind, func(t *testing.T) {
			r := newReleaseFor(t, asJSON(cluster.RESTConfig()))
			r.want(helm.ActionInstall, chartOf("1.0.0", twoItems("one", kind, "second")), "")
			r.want(helm.ActionUpgrade, chartOf("2.0.0", twoItems("two", kind, "third")), "")
			r.want(helm.ActionNone, chartOf("2.0.0", twoItems("two", kind, "third")), "")

			for _, name := range []string{"first", "third"} {
				if got := r.configMap(name); got.Data["version"] != "two" || got.Annotations["meta.helm.sh/release-name"] != "demo" {
					t.Errorf("%s: %v, annotations %v", name, got.Data, got.Annotations)
				}
			}

			if r.has("second") {
				t.Error("the item that was removed is still there")
			}

			if err := cluster.Client().CoreV1().ConfigMaps(r.namespace).Delete(t.Context(), "third", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}

			differences, err := r.client.Drift(t.Context(), 2, nil)
			if err != nil || len(differences) != 1 || differences[0].Object.Name != "third" {
				t.Errorf("%v, %v; want one difference", texts(differences), err)
			}

			if _, err := r.client.Correct(t.Context(), 2, nil, mayBegin); err != nil {
				t.Fatal(err)
			}

			r.configMap("third")

			r.wanted.Absent = true
			r.want(helm.ActionUninstall, chartOf("2.0.0", ""), "")

			if r.has("first") || r.has("third") {
				t.Errorf("left behind: first %v, third %v", r.has("first"), r.has("third"))
			}
		})
	}
}

// A revision says whether its values were checked; the next one has a word of its own.
func TestASchemaThatLeadsOutside(t *testing.T) {
	r := newRelease(t)
	chart := func(version, schema string) chartserver.Chart {
		made := chartserver.ConfigMapChart("demo", version)
		made.Files["values.schema.json"] = schema

		return made
	}
	outside := `{"properties":{"a":{"$ref":"https://schemas.example.com/a.json"}}}`

	for _, step := range []struct {
		action          helm.Action
		version, schema string
		unchecked       bool
	}{
		{helm.ActionInstall, "1.0.0", outside, true},
		{helm.ActionUpgrade, "1.0.1", outside, true},
		{helm.ActionUpgrade, "1.0.2", `{"type":"object"}`, false},
		{helm.ActionUpgrade, "1.0.3", outside, true},
	} {
		r.want(step.action, chart(step.version, step.schema), "a: 1")

		if got := r.observe().Latest().Unchecked; got != step.unchecked {
			t.Errorf("%s: unchecked is %v", step.version, got)
		}
	}
}

// A chart with a kind that the cluster does not serve says so, whether it serves other kinds of the API group or not.
func TestAMissingKind(t *testing.T) {
	for name, apiVersion := range map[string]string{"group": "gateway.networking.k8s.io/v1", "kind": "v1"} {
		t.Run(name, func(t *testing.T) {
			r := newReleaseFor(t, asJSON(cluster.RESTConfig()))
			template := "apiVersion: " + apiVersion + "\nkind: HTTPRoute\nmetadata: {name: route}\n"
			r.wantError(helm.ActionInstall, chartOf("1.0.0", template), "", helm.ReasonFailed, `no matches for kind "HTTPRoute" in version "`+apiVersion+`"`)
		})
	}
}
