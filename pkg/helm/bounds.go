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
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// textLimits bound all objects of a release together, and all CRDs of a chart: Helm
// decodes them several times, and keeps them while it waits.
//
//nolint:gochecknoglobals // a constant, but Go has none of this type
var textLimits = foreign.Limits{Bytes: 2 * render.MaxText, Depth: 200, Nodes: 500_000, Expanded: 2 * render.MaxText}

// separator stands between two YAML documents.
const separator = "\n---\n"

// notesFile is the name of the file that is no manifest.
const notesFile = "NOTES.txt"

// manifests is what is known of the text of a chart's files.
type manifests struct {
	size foreign.Size
	// name is that of the file that is wrong, or with which they are too much, and err what is wrong.
	name string
	err  error
}

// look checks what a chart prints as Helm will separate it. All of it happens in this process, so it is bounded.
func look(ctx context.Context, files map[string]string) manifests {
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
		texts[name] = strings.Join(slices.Collect(maps.Values(documents)), separator)
	}

	size, name, err := checkTexts(ctx, texts)

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
	if err := c.target.Charts.Explain(ctx, c.target.Tenant, found.name, files[found.name]); err != nil {
		return explainRendering(request.Chart, err)
	}

	return fmt.Errorf("YAML parse error on %s: %w", found.name, found.err)
}

// checkTexts checks texts together. It returns their size, or the name of the one that is
// wrong, or of the one with which they are too much.
func checkTexts(ctx context.Context, texts map[string]string) (foreign.Size, string, error) {
	names := slices.Sorted(maps.Keys(texts))

	var all strings.Builder

	for _, name := range names {
		all.WriteString(texts[name])
		all.WriteString(separator)
	}

	size, err := foreign.Measure(ctx, []byte(all.String()), textLimits)
	if err == nil {
		return size, "", nil
	}

	for _, name := range names {
		if err := foreign.Check(ctx, []byte(texts[name]), textLimits); err != nil {
			return size, name, err
		}
	}

	return size, fmt.Sprintf("all of %d files", len(names)), err
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
