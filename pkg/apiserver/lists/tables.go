package lists

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	"k8s.io/apimachinery/pkg/runtime"
)

// plainTables encodes tables, and lists of metadata, as JSON without white space, and reports whether a request asks for
// one. Indented JSON of a table with deeply nested objects can take a hundred times the size of the objects, and nobody
// reads it: kubectl prints tables itself.
func plainTables(r *http.Request) (plain *http.Request, table bool) {
	// The parser of the library: what is written in another way is understood in the same.
	clauses := goautoneg.ParseAccept(r.Header.Get("Accept"))
	if !slices.ContainsFunc(clauses, isTable) {
		return r, false
	}

	accept := make([]string, 0, len(clauses))
	for _, clause := range clauses {
		accept = append(accept, plainClause(clause))
	}

	plain = r.Clone(r.Context())
	plain.Header.Set("Accept", strings.Join(accept, ","))

	query := plain.URL.Query()
	query.Set("pretty", "false")
	plain.URL.RawQuery = query.Encode()

	return plain, true
}

// isTable reports whether a clause of an Accept header asks for another kind than that of the objects.
func isTable(clause goautoneg.Accept) bool {
	for _, name := range []string{"as", "g", "v"} {
		if _, found := clause.Params[name]; found {
			return true
		}
	}

	return false
}

// plainClause writes a clause of an Accept header with JSON in place of YAML, and without a wish for white space.
func plainClause(clause goautoneg.Accept) string {
	media := clause.Type + "/" + clause.SubType
	if media == runtime.ContentTypeYAML {
		media = runtime.ContentTypeJSON
	}

	parts := []string{media}

	for name, value := range clause.Params {
		if name != "pretty" {
			parts = append(parts, name+"="+value)
		}
	}

	slices.Sort(parts[1:])

	return strings.Join(append(parts, "q="+strconv.FormatFloat(clause.Q, 'f', -1, 32)), ";")
}
