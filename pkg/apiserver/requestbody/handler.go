// Package requestbody checks the bodies of requests before the library decodes them: how long one may be, how many
// values and what nesting it may have, that it has no YAML aliases, and how much memory all of them may take together
// (how long one holds its part: pkg/registry/memory).
// It turns a strategic merge patch into a merge patch where both mean the same, keeps the body of a create for
// field ownership (registry.WithCreation), and says which fields of a refused body have values of a wrong type.
//
// pkg/apiserver makes it one of its handlers, with Bound, and has the tests with a running server; cmd/apiserver names
// MaxBytes in its options. How large an object may be that is stored is for pkg/registry/internal/kit to say.
package requestbody

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/chain"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/memory"
)

// Budget is the memory that the work for all requests may take together, in bytes. A request that needs more than all of it
// runs alone, and one user has half of it at most, or one request that is larger.
const Budget = 160 << 20

// MaxBytes is the largest request body that is read, in bytes. Larger ones are answered with 413 and a message that
// names the limit. It lies below what etcd accepts (1.5 MiB), so that nobody ever sees etcd's own error.
const MaxBytes = 1 << 20

const (
	// maxBodyValues is how many maps, lists, keys and values a request body may have. A spec may have half as many
	// (see kit); the rest is for the status and the managed fields that clients send back.
	maxBodyValues = 100_000
	// maxBodyDepth is far above what a spec and its field ownership may have (see kit), and far below the 10,000 levels
	// that whoever reads JSON allows: a list, a watch event and a patch add levels of their own.
	maxBodyDepth = 1000

	// maxCopied is how many bytes all copy operations of one JSON patch may add together. The library's limit of 3
	// MiB, filled with empty objects, would become a gigabyte in memory.
	maxCopied = 256 << 10
	// bytesPerCopied is the memory for one copied byte: two bytes make a value.
	bytesPerCopied = memory.PerValue / 2

	// bodyWait is how long a request waits for its part of the budget.
	bodyWait = 20 * time.Second
	// waitingPerUser is how many requests of one user may wait for their parts at the same time.
	waitingPerUser = 64
)

// Bound bounds the memory that request bodies take once decoded. A bound on the length is not enough: a YAML text of
// 121 KB with aliases took 9.9 GB, and the library's own check only detects aliases of aliases. The library decodes
// apply patches without the serializers, so this is a handler in front of everything that decodes, after authorisation
// and inside the audit.
//
// The length is bounded by the configuration's MaxRequestBodyBytes. A body with aliases, or one that cannot be read, is
// answered with 400, one that exceeds a limit with 413, one that arrives too slowly with 408, and one that has waited too long
// for its memory with 429.
//
// The work for all requests takes budget bytes at most: Budget, or less in a test that sends less. While bodies arrive they have
// a part of their own (see receive.go).
func Bound(config *genericapiserver.Config, budget int64) {
	config.JSONPatchMaxCopyBytes = maxCopied
	bounded := newBodies(budget)

	chain.Outside(config, func(next http.Handler, _ *genericapiserver.Config) http.Handler { return withDeadline(next) })
	chain.Inside(config, func(next http.Handler, c *genericapiserver.Config) http.Handler {
		bounded.next, bounded.serializer, bounded.maxBytes = next, c.Serializer, c.MaxRequestBodyBytes

		return bounded
	})
}

// bodies is the handler that Bound makes.
type bodies struct {
	next       http.Handler
	budget     int64          // in all, in bytes
	work       *memory.Budget // for what becomes of a body
	arriving   *memory.Budget // for bodies that arrive, or wait for the other
	serializer runtime.NegotiatedSerializer
	maxBytes   int64
	wait       time.Duration
	grace      time.Duration // for a body to arrive; see graceTime
}

func newBodies(budget int64) bodies {
	return bodies{
		budget: budget, work: memory.NewBudget(budget, budget, waitingPerUser),
		arriving: memory.NewBudget(Arriving, Arriving, waitingPerUser), wait: bodyWait, grace: graceTime,
	}
}

// ServeHTTP implements http.Handler.
func (b bodies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !mayHaveBody(r) {
		b.next.ServeHTTP(w, r)

		return
	}

	arriving := &charge{budget: b.arriving}
	defer arriving.giveBack()

	body, err := b.receive(r, arriving)

	var refusal *apierrors.StatusError

	switch {
	case errors.As(err, &refusal):
		b.refuse(w, r, err)

		return
	case err != nil: // the library answers this, as it meets the same error
		b.next.ServeHTTP(w, withBody(r, io.MultiReader(bytes.NewReader(body), failing{err})))

		return
	}

	giveBack, err := b.admit(r, body)
	if err != nil {
		b.refuse(w, r, err)

		return
	}

	arriving.giveBack() // it is a part of the work from here on

	b.serve(w, r, body, memory.NewPart(giveBack))
}

// serve passes a request on with its part of the budget. The part is held as long as the work lasts: the store retains it,
// because the library goes on with work whose request has ended, and this handler gives it up when the answer begins,
// because nobody knows when the client will have read it.
func (b bodies) serve(w http.ResponseWriter, r *http.Request, body []byte, part *memory.Part) {
	release := sync.OnceFunc(part.Release)
	defer release()

	plain := w
	w = responsewriter.WrapForHTTP1Or2(&answer{ResponseWriter: w, begin: release, replace: func() bool {
		err := b.explain(r.Context(), r, body)
		if err != nil {
			plain.Header().Del("Content-Encoding")
			b.refuse(plain, r, err)
		}

		return err != nil
	}})
	r = r.WithContext(memory.WithPart(r.Context(), part))

	b.next.ServeHTTP(w, withBody(asMergePatch(b.withCreation(r, body), body), bytes.NewReader(body)))
}

// answer calls begin when the answer to a request begins, and lets replace answer instead where the library refuses a body.
type answer struct {
	http.ResponseWriter

	begin    func()
	replace  func() bool // reports whether it has answered
	replaced bool
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	defer a.begin()

	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		a.replaced = a.replaced || a.replace()
	}

	if !a.replaced {
		a.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(text []byte) (int, error) {
	a.begin()

	if a.replaced {
		return len(text), nil
	}

	return a.ResponseWriter.Write(text)
}

// withCreation stores the body of a create request in the request's context. See registry.WithCreation.
func (b bodies) withCreation(r *http.Request, body []byte) *http.Request {
	if r.Method != http.MethodPost {
		return r
	}

	converted, err := foreign.ToJSON(r.Context(), body, b.limits())
	if err != nil {
		return r // the library says why
	}

	return r.WithContext(registry.WithCreation(r.Context(), converted))
}

// mayHaveBody reports whether the library may read the request's body.
func mayHaveBody(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return r.Body != nil && r.Body != http.NoBody
	default:
		return false
	}
}

// refuse answers a request with an error.
func (b bodies) refuse(w http.ResponseWriter, r *http.Request, err error) {
	version := v1alpha1.SchemeGroupVersion
	if request, found := genericapirequest.RequestInfoFrom(r.Context()); found {
		version.Group, version.Version = request.APIGroup, request.APIVersion
	}

	responsewriters.ErrorNegotiated(err, b.serializer, version, w, r)
}

// withBody is the request with another body.
func withBody(r *http.Request, body io.Reader) *http.Request {
	changed := *r
	changed.Body = io.NopCloser(body)

	return &changed
}

// failing returns the error of a body that could not be read completely.
type failing struct{ error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) { return 0, f.error }

// limits returns the bounds on a decoded body.
func (b bodies) limits() foreign.Limits {
	return foreign.Limits{Bytes: int(b.maxBytes), Depth: maxBodyDepth, Nodes: maxBodyValues, Expanded: int(b.maxBytes), NoAliases: true}
}

// admit checks a body and takes its part of the budget; the returned function gives that part back. The error is the
// answer to the client.
func (b bodies) admit(r *http.Request, body []byte) (func(), error) {
	ctx, cancel := context.WithTimeout(r.Context(), b.wait)
	defer cancel()

	if err := b.check(ctx, r, body); err != nil {
		return nil, err
	}

	cost := int64(len(body))*memory.Copies + valuesOf(body)*memory.PerValue

	patch := readJSONPatch(r, body)
	if patch.copies {
		cost += maxCopied * bytesPerCopied
	}

	merged := mergedBytes(r, body, patch)
	if merged > b.budget {
		return nil, apierrors.NewRequestEntityTooLargeError("a patch that is so long must not be nested so deep: " +
			"send it in parts, or the whole object by an update or server-side apply")
	}

	cost = min(cost+merged, b.budget)

	giveBack, err := b.work.Take(ctx, cost)
	if err != nil {
		return nil, busy()
	}

	return giveBack, nil
}

// mergedBytes is the memory that the rests of the text take while a patch is applied; 0 for other bodies. What a JSON
// patch copies becomes text again, which can be deeper than the body is: as deep as a pointer, or a value at its end.
func mergedBytes(r *http.Request, body []byte, patch jsonPatch) int64 {
	switch patchTypeOf(r) {
	case types.MergePatchType, types.StrategicMergePatchType, types.JSONPatchType:
	default:
		return 0
	}

	bytes, levels := len(body), foreign.DepthOfJSON(body)
	if patch.copies {
		bytes, levels = bytes+maxCopied, levels+patch.levels
	}

	return int64(memory.RestPerByteAndLevel * float64(bytes) * float64(levels))
}

// check applies the limits to a body.
func (b bodies) check(ctx context.Context, r *http.Request, body []byte) error {
	if !json.Valid(body) && isNoYAML(r) {
		return nil // the library answers, before it makes anything of it
	}

	// A body that can be read neither here nor by the library is refused here: nothing is known about its content.
	err := foreign.Check(ctx, body, b.limits())

	var exceeded *foreign.LimitError

	switch {
	case err == nil:
		return nil
	case errors.As(err, &exceeded):
		return apierrors.NewRequestEntityTooLargeError("the request body " + exceeded.Error())
	case ctx.Err() != nil:
		return busy()
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("the request body %v", err))
	}
}

// isNoYAML reports whether the library never reads the body as YAML.
func isNoYAML(r *http.Request) bool {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))

	return err == nil && !strings.HasSuffix(mediaType, "yaml")
}

// valuesOf returns an upper bound of the number of values in a body that was checked. Each value but the first has
// one of these characters before it.
func valuesOf(body []byte) int64 {
	most := 1
	for _, indicator := range []string{",", ":", "[", "{", "\n", "- "} {
		most += bytes.Count(body, []byte(indicator))
	}

	return int64(min(most, maxBodyValues))
}

// busy is the answer to a request that waited too long for its part of the budget.
func busy() error {
	return apierrors.NewTooManyRequests("too many large requests are being handled: try again", 1)
}
