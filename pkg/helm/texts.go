package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
)

// checkTexts measures and bounds the manifests inside of a record, which are one value each there: Helm parses them for every
// comparison, upgrade and uninstallation.
func checkTexts(ctx context.Context, record []byte) (foreign.Size, error) {
	// Read as Helm reads it, so that nobody can show us other manifests than Helm.
	var kept struct {
		Manifest string `json:"manifest"`
		Hooks    []*struct {
			Manifest string `json:"manifest"`
		} `json:"hooks"`
	}

	if err := json.Unmarshal(record, &kept); err != nil {
		return foreign.Size{}, errors.New("is damaged")
	}

	texts := map[string]string{}

	add := func(name, text string) {
		// Helm separates documents in its own way, and more often than YAML does.
		for at, document := range releaseutil.SplitManifests(text) {
			texts[name+" "+at] = document
		}
	}

	add("manifest", kept.Manifest)

	for i, hook := range kept.Hooks {
		if hook != nil {
			add(fmt.Sprintf("hook %d", i), hook.Manifest)
		}
	}

	return checkDocuments(ctx, texts)
}

// checkDocuments checks texts together, and each for itself if one is no YAML. Such a one is for Helm to refuse, as long as
// it cannot have an alias: what one parser refuses, another may read.
func checkDocuments(ctx context.Context, texts map[string]string) (foreign.Size, error) {
	all := strings.Join(slices.Collect(maps.Values(texts)), drift.ManifestSeparator)

	total, err := foreign.Measure(ctx, []byte(all), drift.ManifestLimits())
	if !errors.Is(err, foreign.ErrSyntax) {
		return total, inManifests(err)
	}

	total = foreign.Size{}

	for _, text := range texts {
		size, err := foreign.Measure(ctx, []byte(text), drift.ManifestLimits())
		if errors.Is(err, foreign.ErrSyntax) && !(strings.Contains(text, "&") && strings.Contains(text, "*")) {
			continue
		}

		if err != nil {
			return foreign.Size{}, inManifests(err)
		}

		total = total.And(size)
	}

	return total, nil
}

func inManifests(err error) error {
	if err == nil {
		return nil
	}

	return fmt.Errorf("has manifests of which at least one %w", err)
}
