package requestbody

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/memory"
)

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
