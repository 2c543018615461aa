package kubeclient

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Only what an API server says clearly counts: that it has no such group, or that no version of it has the kind.
func TestMustBeUnserved(t *testing.T) {
	const (
		unavailable = "503"
		group       = `{"kind":"APIGroup","apiVersion":"v1","name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"},{"groupVersion":"example.com/v2","version":"v2"}]}`
		others      = `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.org"}]}`
		all         = `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.org"},{"name":"example.com"}]}`
		gadgets     = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"x","resources":[{"name":"gadgets","kind":"Gadget"}]}`
		widgets     = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"x","resources":[{"name":"gadgets","kind":"Gadget"},{"name":"widgets","kind":"Widget"}]}`
	)

	versions := map[string]string{"/apis": all, "/apis/example.com": group, "/apis/example.com/v1": gadgets, "/apis/example.com/v2": gadgets}
	but := func(path, answer string) map[string]string {
		changed := maps.Clone(versions)
		changed[path] = answer

		return changed
	}

	for name, test := range map[string]struct {
		group    string
		answers  map[string]string // the others are 404
		unserved bool
	}{
		"no group":                         {"example.com", map[string]string{"/apis": others}, true},
		"no group, which is listed":        {"example.com", map[string]string{"/apis": all}, false},
		"no group, and nothing is listed":  {"example.com", map[string]string{"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`}, false},
		"no group, and no list":            {"example.com", nil, false},
		"no group, and the list is away":   {"example.com", map[string]string{"/apis": unavailable}, false},
		"the group is away":                {"example.com", but("/apis/example.com", unavailable), false},
		"no version has the kind":          {"example.com", versions, true},
		"the last version has the kind":    {"example.com", but("/apis/example.com/v2", widgets), false},
		"a version is away":                {"example.com", but("/apis/example.com/v2", unavailable), false},
		"a version is listed only":         {"example.com", but("/apis/example.com/v2", ""), false},
		"a version has no kinds":           {"example.com", but("/apis/example.com/v2", `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"x","resources":[]}`), false},
		"the objects are in another group": {"extensions", map[string]string{"/apis": others}, false},
		"no such kind of the first group":  {"", map[string]string{"/api/v1": gadgets}, true},
		"the first group is not there":     {"", map[string]string{"/apis": others}, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")

				switch answer := test.answers[r.URL.Path]; answer {
				case "":
					http.NotFound(w, r)
				case unavailable:
					w.WriteHeader(http.StatusServiceUnavailable)
				default:
					_, _ = w.Write([]byte(answer))
				}
			}))
			defer server.Close()

			clients, err := NewGetter(&rest.Config{Host: server.URL}, "apps")
			if err != nil {
				t.Fatal(err)
			}

			guard := &Guard{clients: clients}
			if err := guard.MustBeUnserved(schema.GroupKind{Group: test.group, Kind: "Widget"}); (err == nil) != test.unserved {
				t.Errorf("got %v", err)
			}
		})
	}
}
