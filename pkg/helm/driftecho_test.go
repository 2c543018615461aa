package helm

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/release/common"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// A server that answers with what it was sent, as a name or as a key of an object, gets none of it into a difference.
func TestDifferencesShowNoCredentials(t *testing.T) {
	const token = "s3cret/token~of/us"

	cluster := newFakeCluster(t)
	cluster.add(t, applied(1, common.StatusDeployed, object("moved")+"---\n"+object("labelled"), nil))
	cluster.configMaps = func(to http.ResponseWriter, request *http.Request) {
		sent := strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")

		switch {
		case strings.HasSuffix(request.URL.Path, "/moved"):
			_, _ = fmt.Fprintf(to, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"moved","annotations":{"meta.helm.sh/release-name":%q}}}`, sent)
		case request.Method == http.MethodGet:
			_, _ = fmt.Fprint(to, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"labelled"},"data":{"b":"c"}}`)
		default:
			_, _ = fmt.Fprintf(to, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"labelled"},"data":{"b":"c",%q:"a"}}`, sent)
		}
	}

	config := cluster.config()
	config.BearerToken = token

	c := New(Target{Config: config, Scrub: redact.Of(token).Remove, Name: "demo", Namespace: "apps"}, logr.Discard(), time.Second)

	found, err := c.Drift(t.Context(), 1, nil)
	if err != nil || len(found) != 2 {
		t.Fatalf("%v, %v", found, err)
	}

	for _, difference := range found {
		text := fmt.Sprintf("%+v", difference)
		if strings.Contains(text, "s3cret") || strings.Contains(text, "token") || !strings.Contains(text, "[removed]") {
			t.Errorf("it shows the token: %s", text)
		}
	}
}

// object is the text of a ConfigMap.
func object(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
}
