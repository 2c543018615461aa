package lists

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/munnerz/goautoneg"
)

// TestPlainTables: requests for a table, in whichever way the library understands them, ask for JSON without white space. All
// else stays, and in its place.
func TestPlainTables(t *testing.T) {
	for accept, want := range map[string]string{
		"":                                "",
		"application/yaml":                "application/yaml",
		"application/json;pretty=1":       "application/json;pretty=1",
		"application/json;alias=as=Table": "application/json;alias=as=Table",
		"application/json;as=Table;v=v1;g=meta.k8s.io":                    "application/json;as=Table;v=v1;g=meta.k8s.io",
		"application/json; as =Table; v = v1;g=meta.k8s.io; pretty =1":    "application/json; as =Table; v = v1;g=meta.k8s.io;pretty=0",
		"application/ yaml;as=Table;v=v1":                                 "application/json;as=Table;v=v1",
		"application/yaml;as=PartialObjectMetadataList;v=v1":              "application/json;as=PartialObjectMetadataList;v=v1",
		"application/json;q=0.5,application/json;as=Table;v=v1;g=x;q=0.9": "application/json;q=0.5,application/json;as=Table;v=v1;g=x;q=0.9",
		"application/json;as=Table;v=v1, application/yaml;pretty=1, */*":  "application/json;as=Table;v=v1, application/yaml;pretty=1, */*",
		"*/*, application/yaml, application/yaml;as=Table;v=v1,,/":        "*/*, application/yaml,application/json;as=Table;v=v1,,/",
	} {
		request := httptest.NewRequest(http.MethodGet, "/?pretty=true&limit=5", nil)
		request.Header.Set("Accept", accept)

		plain, table := plainTables(request)
		if got := plain.Header.Get("Accept"); got != want {
			t.Errorf("%q becomes %q, want %q", accept, got, want)
		}

		asked := false
		for _, clause := range goautoneg.ParseAccept(accept) {
			asked = asked || isTable(clause)
		}

		if query := plain.URL.Query(); table != asked || query.Get("limit") != "5" || query.Get("pretty") != strconv.FormatBool(!table) {
			t.Errorf("%q: a table: %t, query %v", accept, table, query)
		}
	}
}

// FuzzPlainTables: the library reads the new header like the old one, except for what makes it indent a table.
func FuzzPlainTables(f *testing.F) {
	f.Add("application/ yaml; as =Table;q=.5;pretty =1,*/*;as=x; q=1;=y,*;q=nan")
	f.Add("application/yaml,application/json;as=Table;v= ;pretty=1,application/json;pretty=1;q=0.1,,/")
	f.Add("*/*,a/b;q=0.9,application/yaml;as=x,application/json,a/*")

	f.Fuzz(func(t *testing.T, header string) {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Header.Set("Accept", header)

		plain, _ := plainTables(request)

		want, got := goautoneg.ParseAccept(header), goautoneg.ParseAccept(plain.Header.Get("Accept"))
		for i := range want {
			if !isTable(want[i]) || i >= len(got) {
				continue
			}

			if want[i].Type == "application" && want[i].SubType == "yaml" {
				want[i].SubType = "json"
			}

			if got[i].Params["pretty"] == "1" {
				t.Errorf("%q: got %v", header, got)
			}

			delete(want[i].Params, "pretty")
			delete(got[i].Params, "pretty")
		}

		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: got %v, want %v", header, got, want)
		}
	})
}
