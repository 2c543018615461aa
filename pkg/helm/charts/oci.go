package charts

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// Media types of a chart in a registry, as the OCI image specification and Helm define them.
const (
	manifestType   = "application/vnd.oci.image.manifest.v1+json"
	chartLayer     = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	signatureLayer = "application/vnd.cncf.helm.chart.provenance.v1.prov"
	// versionAnnotation holds the chart's version in a manifest.
	versionAnnotation = "org.opencontainers.image.version"
	// digestHeader is where a registry says the digest of what it returns.
	digestHeader = "Docker-Content-Digest"
	// maxManifestBytes is the largest manifest or page of tags.
	maxManifestBytes = 4 << 20
)

// repositoryURL is the base URL of a chart's repository in a registry.
func repositoryURL(chart string) (base, name string, err error) {
	parsed, err := url.Parse(chart)
	if err != nil || parsed.Host == "" || parsed.User != nil {
		return "", "", fail(Invalid, "chart must be a URL such as oci://registry.example.com/charts/name")
	}

	repository := strings.Trim(parsed.Path, "/")
	if strings.ContainsAny(repository, ":@?#") {
		return "", "", fail(Invalid, "chart %s must have no tag or digest: use chart.version and chart.digest", chart)
	}

	return "https://" + registryHost(parsed.Host) + "/v2/" + repository, path.Base(repository), nil
}

// published is the chart that a registry has under a version.
type published struct {
	artifact

	askedAt time.Time // when the registry was asked
}

// resolveOCI looks a chart up in a registry. What the registry said a moment ago counts, unless the source wants to know more.
func (f *Fetcher) resolveOCI(ctx context.Context, s *sourceClient, source *Source) (*Resolved, error) {
	base, name, err := repositoryURL(source.Chart)
	if err != nil {
		return nil, err
	}

	s.host = registryHost(s.host)
	key := "published/" + source.scope() + sum(base, source.Version, source.Digest)

	kept := func() *published {
		found, _ := f.cache.get(key).(*published)
		if found == nil || !f.counts(found.askedAt, source) {
			return nil
		}

		return found
	}

	found := kept()
	if found == nil {
		value, err := f.askOnce(ctx, key, base, source, func(ctx context.Context) (any, error) {
			// Somebody else's question may have ended since.
			if found := kept(); found != nil {
				return found, nil
			}

			return f.findPublished(ctx, s, source, base, key)
		})
		if err != nil {
			return nil, err
		}

		found = value.(*published) //nolint:forcetypeassert // the function above returns nothing else
	}

	return &Resolved{
		Name: name, Version: found.version, ArchiveDigest: found.archive, ManifestDigest: found.digest,
		location: base + "/blobs/", size: found.size, signature: found.signature,
	}, nil
}

// findPublished asks a registry for the chart of a version, or with a digest, and keeps the answer.
func (f *Fetcher) findPublished(ctx context.Context, s *sourceClient, source *Source, base, key string) (*published, error) {
	found := &published{askedAt: f.now()}
	reference, version := source.Digest, ""

	switch {
	case source.Digest != "":
	case isExact(source.Version):
		reference, version = tagOf(source.Version), source.Version
	default:
		var err error
		if version, err = s.newestTag(ctx, base, source, f.newChoice(source)); err != nil {
			return nil, err
		}

		reference = tagOf(version)
	}

	manifest, err := f.manifest(ctx, s, source, base, reference)
	if err != nil {
		return nil, err
	}

	if err := f.checkPin(ctx, source, manifest); err != nil {
		return nil, err
	}

	if found.artifact = *manifest; version != "" {
		found.version = version
	}

	f.cache.put(key, found, int64(len(key))+found.cost())

	return found, nil
}

// Tags cannot hold a plus sign; Helm writes an underscore instead.
func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

// downloadBlob fetches the archive of a chart from a registry, as download does it from a repository.
func (f *Fetcher) downloadBlob(ctx context.Context, s *sourceClient, resolved *Resolved) (data []byte, done func(), err error) {
	if resolved.size > f.options.MaxArchiveBytes {
		return nil, nil, tooLarge("chart archive", resolved.fullLocation(), f.options.MaxArchiveBytes)
	}

	release, err := f.downloads.enter(ctx, s.host)
	if err != nil {
		return nil, nil, err
	}
	defer release()

	s.host = registryHost(s.host)

	return s.fetchLarge(ctx, resolved.fullLocation(), nil, f.options.MaxArchiveBytes, "chart archive")
}

// downloadSignature fetches the provenance file of a chart from a registry.
func (f *Fetcher) downloadSignature(ctx context.Context, s *sourceClient, resolved *Resolved) ([]byte, error) {
	if resolved.signature == "" {
		return nil, fail(Unverified, "chart %s %s has no provenance file", resolved.Name, resolved.Version)
	}

	s.host = registryHost(s.host)

	signed, err := s.fetch(ctx, resolved.location+resolved.signature, nil, maxProvenanceBytes, "provenance file")
	if err != nil {
		return nil, err
	}

	if digestOf(signed) != resolved.signature {
		return nil, fail(DigestMismatch, "the provenance file of chart %s %s is not the one that its manifest names", resolved.Name, resolved.Version)
	}

	return signed, nil
}

// fetch reads something of a registry.
func (s *sourceClient) fetch(ctx context.Context, location string, header http.Header, limit int64, what string) ([]byte, error) {
	data, done, err := s.fetchLarge(ctx, location, header, limit, what)
	if err != nil {
		return nil, err
	}

	done()

	return data, nil
}

// fetchLarge reads something of a registry that may be large; see readLarge.
func (s *sourceClient) fetchLarge(ctx context.Context, location string, header http.Header, limit int64, what string) (data []byte, done func(), err error) {
	response, err := s.registry(ctx, http.MethodGet, location, header)
	if err != nil {
		return nil, nil, err
	}
	defer discard(response)

	if response.StatusCode != http.StatusOK {
		return nil, nil, s.refused(response, what)
	}

	return s.readLarge(ctx, response, limit, what)
}

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
