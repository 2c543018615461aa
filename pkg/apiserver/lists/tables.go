package lists

import (
	"net/http"
	"strings"

	"github.com/munnerz/goautoneg"
	"k8s.io/apimachinery/pkg/runtime"
)

// plainTables encodes tables, and lists of metadata, as JSON without white space, and reports whether a request asks for
// one. Indented JSON of a table with deeply nested objects can take a hundred times the size of the objects, and nobody
// reads it: kubectl prints tables itself.
func plainTables(r *http.Request) (plain *http.Request, table bool) {
	parts, table := strings.Split(r.Header.Get("Accept"), ","), false

	for i, part := range parts {
		// The parser of the library: what is written in another way is understood in the same. The clauses keep their places,
		// because those of the same weight are tried in their order.
		for _, clause := range goautoneg.ParseAccept(part) { // one, or none if it is malformed
			if isTable(clause) {
				parts[i], table = plainClause(part, clause), true
			}
		}
	}

	if !table {
		return r, false
	}

	plain = r.Clone(r.Context())
	plain.Header.Set("Accept", strings.Join(parts, ","))

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

// plainClause returns a clause of an Accept header with JSON in place of YAML, and without a wish for white space. All else
// stays as it was written.
func plainClause(text string, clause goautoneg.Accept) string {
	parts := strings.Split(text, ";")

	if clause.Type+"/"+clause.SubType == runtime.ContentTypeYAML {
		parts[0] = runtime.ContentTypeJSON
	}

	for i, parameter := range parts[1:] {
		if name, _, _ := strings.Cut(parameter, "="); strings.Trim(name, " ") == "pretty" {
			parts[i+1] = "pretty=0"
		}
	}

	return strings.Join(parts, ";")
}
