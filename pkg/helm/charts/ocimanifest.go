package charts

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// artifact is what a manifest says about a chart.
type artifact struct {
	digest    string // of the manifest
	version   string // as annotated; may be empty
	archive   string // digest of the archive
	size      int64  // of the archive
	signature string // digest of the provenance file; may be empty
}

// cost is about how many bytes it takes in memory.
func (a *artifact) cost() int64 {
	const itself = 256 // with what the cache has for it

	return itself + render.TextCost(a.digest) + render.TextCost(a.version) + render.TextCost(a.archive) + render.TextCost(a.signature)
}

// checkPin checks that a pinned manifest is of the wanted version.
func (f *Fetcher) checkPin(ctx context.Context, source *Source, found *artifact) error {
	if source.Digest == "" || source.Version == "" || found.version == "" {
		return nil
	}

	if at, err := choose(ctx, f.newChoice(source), slices.All([]string{found.version})); err != nil {
		return err
	} else if at < 0 {
		return fail(DigestMismatch, "%s with digest %s is version %s, but chart.version wants %s", source.Chart, source.Digest, found.version, source.Version)
	}

	return nil
}

// manifest returns what the manifest under a tag or digest says, from the cache
// if the registry says that it is the same.
func (f *Fetcher) manifest(ctx context.Context, s *sourceClient, source *Source, base, reference string) (*artifact, error) {
	key := func(digest string) string { return "manifest/" + source.scope() + base + "@" + digest }
	location := base + "/manifests/" + reference
	accept := http.Header{"Accept": {manifestType}}

	if kept, ok := f.cache.get(key(reference)).(*artifact); ok {
		return kept, nil
	}

	response, err := s.registry(ctx, http.MethodHead, location, accept)
	if err != nil {
		return nil, err
	}

	discard(response)

	if response.StatusCode == http.StatusOK {
		if kept, ok := f.cache.get(key(response.Header.Get(digestHeader))).(*artifact); ok {
			return kept, nil
		}
	}

	data, err := s.fetch(ctx, location, accept, maxManifestBytes, "chart")
	if err != nil {
		return nil, err
	}

	digest := digestOf(data)
	if strings.HasPrefix(reference, "sha256:") && digest != reference {
		return nil, fail(DigestMismatch, "%s answers with a manifest of digest %s, expected %s", shown(response.Request.URL), digest, reference)
	}

	found, err := parseManifest(ctx, data, source.Chart)
	if err != nil {
		return nil, err
	}

	f.cache.put(key(digest), found, int64(len(key(digest)))+found.cost())

	return found, nil
}

func parseManifest(ctx context.Context, data []byte, chart string) (*artifact, error) {
	var document struct {
		Layers []struct {
			MediaType string `json:"mediaType"`
			Digest    string `json:"digest"`
			Size      int64  `json:"size"`
		} `json:"layers"`
		Annotations map[string]string `json:"annotations"`
	}

	if err := decodeJSON(ctx, data, maxSmallNodes, &document); err != nil {
		return nil, unreadable(err, chart, "manifest")
	}

	found := &artifact{digest: digestOf(data), version: document.Annotations[versionAnnotation]}

	// Helm makes the tag of the version, so no version is longer than a tag.
	if len(found.version) > maxTag {
		return nil, fail(Invalid, "%s is no Helm chart: its manifest names a version of %d bytes", chart, len(found.version))
	}

	for _, layer := range document.Layers {
		switch {
		case normalDigest(layer.Digest) != layer.Digest:
		case layer.MediaType == chartLayer:
			found.archive, found.size = layer.Digest, layer.Size
		case layer.MediaType == signatureLayer:
			found.signature = layer.Digest
		}
	}

	if found.archive == "" {
		return nil, fail(Invalid, "%s is no Helm chart: its manifest has no chart layer", chart)
	}

	return found, nil
}
