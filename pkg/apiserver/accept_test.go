package apiserver_test

import (
	"net/http"
	"strings"
	"testing"
)

// Whatever a client's Accept header says, the answer is 200, 404 or 406, and never a server error: clients ask for
// tables, metadata and other encodings of everything that they find in discovery.
func TestEveryAnswerInEveryForm(t *testing.T) {
	s := startServer(t)
	s.makeTemplate(t)

	const table, metadata = "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

	paths := []string{
		clusters, clusters + "/one", clusters + "/one/status", clusters + "/one/template", clusters + "/absent", clusters + "/absent/template",
		workers, workers + "/x", workers + "/x/status", workers + "/x/scale",
		"/apis", "/apis/omni.texashpc.com", "/apis/omni.texashpc.com/v1alpha1",
	}
	accepts := []string{
		"", "*/*", "application/json", "application/yaml", "application/json;stream=watch", "text/plain", "text/html", "nonsense", ",;=", "*",
		"application/vnd.kubernetes.protobuf", "application/cbor", "application/vnd.kubernetes.protobuf,application/json",
		table, table + ",application/json", metadata, metadata + ",application/json", "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
		"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/json;as=Scale;v=v1;g=autoscaling",
		"application/json;as=Nonsense;v=v1;g=meta.k8s.io", "application/yaml;as=Table;v=v1;g=meta.k8s.io", "application/json;q=0", "application/json;profile=nosuch",
		strings.Repeat("application/json,", 1000),
	}

	for _, path := range paths {
		for _, accept := range accepts {
			status, body := s.get(t, path, accept)

			switch status {
			case http.StatusOK, http.StatusNotFound, http.StatusNotAcceptable:
			default:
				t.Errorf("%s as %.80q: status %d: %.300s", path, accept, status, body)
			}

			if strings.HasSuffix(path, "/one/template") && status == http.StatusOK && !strings.Contains(string(body), "kind: ControlPlane") &&
				!(strings.HasPrefix(accept, metadata) && strings.Contains(string(body), `"name":"one"`)) {
				t.Errorf("%s as %.80q is no template: %.300s", path, accept, body)
			}
		}
	}
}

// makeTemplate makes an OmniCluster named one with a control plane, and the OmniWorkers x.
func (s *server) makeTemplate(t *testing.T) {
	t.Helper()

	for path, kind := range map[string]string{controlPlanes: "OmniControlPlane", workers: "OmniWorkers"} {
		s.mustCall(t, http.StatusCreated, http.MethodPost, path, "application/json", `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"`+kind+
			`","metadata":{"name":"x"},"spec":{"clusterRef":{"name":"one"},"machineClass":{"name":"m","size":1}}}`)
	}

	s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, "application/json", clusterJSON("one"))
}
