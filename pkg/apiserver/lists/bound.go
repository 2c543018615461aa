// Package lists bounds the memory that lists of our kinds, and templates, take: how many are read at the same time, and what the
// answer to each of them needs while it is encoded.
//
// pkg/apiserver is the only user, and has the tests with a running server: Bound becomes one of its handlers.
// pkg/registry/quota knows how much is stored, and so what a list may cost.
package lists

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/munnerz/goautoneg"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/chain"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/memory"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/quota"
)

const (
	// Timeout is how long a list waits for its turn before the server asks the client to try again later. A watch
	// that begins with a list gives its memory back after this time.
	Timeout = 10 * time.Second
	// waitingPerUser is how many lists of one user may wait at the same time.
	waitingPerUser = 8
)

// errBusy says that a list did not get its turn in time.
var errBusy = errors.New("as much is being listed as fits into the memory (--max-list-bytes-in-flight)")

// listBudget is the memory that lists may take at the same time, and how long one waits for its part.
type listBudget struct {
	*memory.Budget

	timeout time.Duration
}

// newListBudget makes a budget in which a list that is larger than half leaves the other half to smaller ones.
func newListBudget(size int64, timeout time.Duration) *listBudget {
	return &listBudget{memory.NewBudget(size, size/2, waitingPerUser), timeout}
}

// Bound has tables encoded without white space, and makes lists and templates wait until there is memory for them. Reads of
// one object, watches that do not begin with a list, and writes never wait.
//
// All lists together may take so many bytes of what is stored, counted by the ledger, and each user's half of it; 0
// means no bound. A list that waits longer than the timeout, or for which there is no place in the queue, is answered
// with 429 and the reason.
//
// This handler runs inside priority and fairness: a list that waits here keeps its seat there.
func Bound(config *genericapiserver.Config, ledger *quota.Ledger, bytes int64, timeout time.Duration) {
	var budget *listBudget
	if bytes > 0 {
		budget = newListBudget(bytes, timeout)
	}

	chain.Inside(config, func(next http.Handler, c *genericapiserver.Config) http.Handler {
		return withListBudget(next, budget, ledger, c.Serializer, AnswerTimeout(c))
	})
}

// withListBudget is the handler; a nil budget is none. A watch ends whose client reads nothing for the time unread.
func withListBudget(next http.Handler, budget *listBudget, ledger *quota.Ledger, codecs runtime.NegotiatedSerializer, unread time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, found := genericapirequest.RequestInfoFrom(r.Context())
		if !found || !info.IsResourceRequest || info.APIGroup != v1alpha1.GroupName {
			next.ServeHTTP(w, r)

			return
		}

		r, table := plainTables(r)
		query := r.URL.Query()

		giveBack := func() {}

		if budget != nil && readsMany(info, query) {
			estimate := func() int64 { return cost(info, query, table, ledger) }

			var err error
			if giveBack, err = admit(r, budget, ledger, estimate); err != nil {
				responsewriters.ErrorNegotiated(apierrors.NewTooManyRequests(err.Error(), 1), codecs, v1alpha1.SchemeGroupVersion, w, r)

				return
			}
		}
		defer giveBack()

		if info.Verb == "watch" { // it goes on for long after its beginning
			var end func()

			w, r, end = watching(w, r, unread, giveBack)
			defer end()
		}

		next.ServeHTTP(w, r)
	})
}

// admit waits until the ledger has counted what is stored, because before it would cost nothing, and then for the memory. The
// ledger reads the stores itself, not through this handler.
func admit(r *http.Request, budget *listBudget, ledger *quota.Ledger, cost func() int64) (giveBack func(), err error) {
	ctx, cancel := context.WithTimeout(r.Context(), budget.timeout)
	defer cancel()

	if err := ledger.WaitForAll(ctx); err != nil {
		return nil, err // says to come again
	}

	if giveBack, err = budget.Take(ctx, cost()); err != nil {
		return nil, errBusy
	}

	return giveBack, nil
}

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
