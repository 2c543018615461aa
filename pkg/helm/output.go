package helm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// notesFile is the name of the file that is no manifest.
const notesFile = "NOTES.txt"

// manifests is what is known of the text of a chart's files.
type manifests struct {
	size foreign.Size
	// name is that of the file that is wrong, or with which they are too much, and err what is wrong.
	name string
	err  error
}

// checkOutput checks what a chart prints as Helm will separate it. All of it happens in this process, so it is bounded.
func checkOutput(ctx context.Context, files map[string]string) manifests {
	texts := map[string]string{}

	for name, text := range files {
		// What Helm takes out now could join the parts of something else, which nobody has checked.
		if strings.Contains(text, noValue) {
			return manifests{name: name, err: errNoValue}
		}

		if strings.HasSuffix(name, notesFile) || strings.HasPrefix(path.Base(name), "_") {
			continue
		}

		// Helm separates documents in its own way, and more often than YAML does.
		documents := releaseutil.SplitManifests(text)
		texts[name] = strings.Join(slices.Collect(maps.Values(documents)), drift.ManifestSeparator)
	}

	size, name, err := drift.CheckManifests(ctx, texts)

	return manifests{size: size, name: name, err: err}
}

// errNoValue is a file that prints what Helm takes out.
var errNoValue = errors.New("prints " + noValue + " inside of " + noValue)

// checkManifests refuses what Helm must not parse in this process.
func (c *Client) checkManifests(ctx context.Context, request Request, files map[string]string, found manifests) error {
	switch {
	case errors.Is(found.err, errNoValue):
		return outOfBounds("chart "+request.Chart.String(), &render.RefusedError{Why: found.name + " " + found.err.Error()})
	case !errors.Is(found.err, foreign.ErrSyntax):
		return outOfBounds("chart "+request.Chart.String()+": what "+found.name+" prints", found.err)
	}

	// Helm says where the fault is.
	if err := c.target.Renderers.Explain(ctx, c.target.Tenant, found.name, files[found.name]); err != nil {
		return explainRendering(request.Chart, err)
	}

	return fmt.Errorf("YAML parse error on %s: %w", found.name, found.err)
}

// outOfBounds is the error of something that must not be parsed here; nil if err is.
func outOfBounds(what string, err error) error {
	var (
		limit   *foreign.LimitError
		refusal *render.RefusedError
	)

	switch {
	case err == nil:
		return nil
	case errors.As(err, &limit), errors.As(err, &refusal):
		return &Error{Reason: ReasonRefused, Message: fmt.Sprintf("%s: %s", what, err)}
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}
