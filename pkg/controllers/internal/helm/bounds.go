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

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/helm/render"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
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

// checkManifests refuses what Helm must not parse in this process.
func (c *Client) checkManifests(ctx context.Context, request Request, files map[string]string) error {
	texts := map[string]string{}

	for name, text := range files {
		// What Helm takes out now could join the parts of something else, which nobody has checked.
		if strings.Contains(text, noValue) {
			return outOfBounds("chart "+request.Chart.String(), &render.RefusedError{Why: fmt.Sprintf("%s prints %s inside of %s", name, noValue, noValue)})
		}

		if strings.HasSuffix(name, notesFile) || strings.HasPrefix(path.Base(name), "_") {
			continue
		}

		// Helm separates documents in its own way, and more often than YAML does.
		documents := releaseutil.SplitManifests(text)
		texts[name] = strings.Join(slices.Collect(maps.Values(documents)), separator)
	}

	name, err := checkTexts(ctx, texts)
	if !errors.Is(err, foreign.ErrSyntax) {
		return outOfBounds("chart "+request.Chart.String()+": what "+name+" prints", err)
	}

	// Helm says where the fault is.
	if err := c.target.Charts.Explain(ctx, c.target.Tenant, name, files[name]); err != nil {
		return explainRendering(request.Chart, err)
	}

	return fmt.Errorf("YAML parse error on %s: %w", name, err)
}

// checkTexts checks texts together. It returns the name of the one that is wrong, or
// of the one with which they are too much.
func checkTexts(ctx context.Context, texts map[string]string) (string, error) {
	names := slices.Sorted(maps.Keys(texts))

	var all strings.Builder

	for _, name := range names {
		all.WriteString(texts[name])
		all.WriteString(separator)
	}

	err := foreign.Check(ctx, []byte(all.String()), textLimits)
	if err == nil {
		return "", nil
	}

	for _, name := range names {
		if err := foreign.Check(ctx, []byte(texts[name]), textLimits); err != nil {
			return name, err
		}
	}

	return fmt.Sprintf("all of %d files", len(names)), err
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
