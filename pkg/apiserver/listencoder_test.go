package apiserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

const (
	asJSON = "application/json"
	asYAML = "application/yaml"
)

// withText is an OmniCluster whose manifests have a text and a deeply nested list.
func withText(name, text string, elements int) string {
	encoded, _ := json.Marshal(text)
	nested := strings.Repeat("[", 100) + strings.TrimSuffix(strings.Repeat("1,", elements), ",") + strings.Repeat("]", 100)

	return `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniCluster","metadata":{"name":"` + name + `"},` +
		`"spec":{"connectionRef":{"name":"main"},"kubernetes":{"version":"v1.34.1","manifests":[` +
		`{"name":"a","inline":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"},"data":{"text":` + string(encoded) + `}}]},` +
		`{"name":"b","inline":[{"apiVersion":"v1","kind":"Other","metadata":{"name":"n"},"nested":` + nested + `}]}]},"talos":{"version":"v1.11.2"}}}`
}

// TestListsInEveryFormat: whatever the format, a list has the same content, on one line.
func TestListsInEveryFormat(t *testing.T) {
	s := startServer(t)

	read := func(query, accept string) (text string, content map[string]any) {
		t.Helper()

		status, body := s.get(t, clusters+query, accept)
		if status != http.StatusOK {
			t.Fatalf("%s as %s: status %d: %s", query, accept, status, body)
		}

		if err := yaml.Unmarshal(body, &content); err != nil {
			t.Fatalf("%s as %s: %v in\n%s", query, accept, err, body)
		}

		return string(body), content
	}

	for _, add := range []string{"", withText("a", "one\n  two\n\n\n", 1), withText("b", "items: []\nrows: []\n", 1), withText("large", strings.Repeat("x\n", 40<<10), 3)} {
		if add != "" {
			s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, asJSON, add)
		}

		_, list := read("", asJSON)
		pretty, prettyList := read("?pretty=true", asJSON)
		asYAML, yamlList := read("", asYAML)

		for name, other := range map[string]map[string]any{"pretty": prettyList, "YAML": yamlList} {
			// Not cmp.Diff: its time doubles with each level.
			if !reflect.DeepEqual(list, other) {
				t.Errorf("%s differs from JSON", name)
			}
		}

		for name, text := range map[string]string{"pretty": pretty, "YAML": asYAML} {
			if strings.Contains(strings.TrimSuffix(text, "\n"), "\n") {
				t.Errorf("%s has several lines:\n%.400s", name, text)
			}
		}
	}

	for query, accept := range map[string]string{"?pretty=true": asJSON, "": asYAML} {
		if one, _ := read("/a"+query, accept); !strings.HasPrefix(one, `{"apiVersion":"omni.texashpc.com/v1alpha1"`) && !strings.HasPrefix(one, `{"kind":"OmniCluster",`) {
			t.Errorf("one object%s as %s: %.400s", query, accept, one)
		}
	}
}

// TestMemoryOfLists: several answers at the same time take less memory than the size of two of them.
func TestMemoryOfLists(t *testing.T) {
	const objects, bytes = 24, 600_000

	times := foreigntest.AtOnce(4)

	s := startServer(t)

	for i := range objects {
		s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, asJSON, large(fmt.Sprintf("c%d", i)))
	}

	for _, c := range []struct{ name, query, accept string }{
		{"JSON", "", asJSON},
		{"for people", "?pretty=true", asJSON},
		{"YAML", "", asYAML},
	} {
		t.Run(c.name, func(t *testing.T) {
			var length int64

			foreigntest.WantPeak(t, 2*objects*bytes, func() { length = s.readAll(t, times, clusters+c.query, c.accept) })

			if length < objects*int64(foreigntest.Load(bytes)) {
				t.Errorf("answers of %d bytes", length)
			}
		})
	}
}

// large is an OmniCluster of about 0.7 MB, or a part of it (see foreigntest.Load).
func large(name string) string {
	var manifests []string
	for i := range 3 {
		manifests = append(manifests, fmt.Sprintf(`{"name":"m%d","inline":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"},"data":{"text":%q}}]}`,
			i, strings.Repeat("0123456789abcdef", foreigntest.Load(14<<10))))
	}

	return `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniCluster","metadata":{"name":"` + name + `"},` +
		`"spec":{"connectionRef":{"name":"main"},"kubernetes":{"version":"v1.34.1","manifests":[` + strings.Join(manifests, ",") + `]},"talos":{"version":"v1.11.2"}}}`
}

// readAll sends the given number of requests for a path at the same time, and returns the length of each answer.
func (s *server) readAll(t *testing.T, times int, path, accept string) (length int64) {
	t.Helper()

	lengths := make([]int64, times)

	var reading sync.WaitGroup

	for i := range times {
		reading.Go(func() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
			if err != nil {
				t.Error(err)

				return
			}

			request.Header.Set("Accept", accept)

			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Error(err)

				return
			}
			defer response.Body.Close()

			lengths[i], err = io.Copy(io.Discard, response.Body)
			if err != nil || response.StatusCode != http.StatusOK {
				t.Errorf("%s: status %d, %v", path, response.StatusCode, err)
			}
		})
	}

	reading.Wait()

	return lengths[0]
}
