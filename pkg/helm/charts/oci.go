package charts

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"strings"
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

// artifact is what a manifest says about a chart.
type artifact struct {
	digest    string // of the manifest
	version   string // as annotated; may be empty
	archive   string // digest of the archive
	size      int64  // of the archive
	signature string // digest of the provenance file; may be empty
}

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

// resolveOCI looks a chart up in a registry.
func (f *Fetcher) resolveOCI(ctx context.Context, s *session, source *Source) (*Resolved, error) {
	base, name, err := repositoryURL(source.Chart)
	if err != nil {
		return nil, err
	}

	s.host = registryHost(s.host)

	reference, version := source.Digest, ""

	switch {
	case source.Digest != "":
	case isExact(source.Version):
		reference, version = tagOf(source.Version), source.Version
	default:
		if version, err = s.newestTag(ctx, base, source); err != nil {
			return nil, err
		}

		reference = tagOf(version)
	}

	found, err := f.manifest(ctx, s, source, base, reference)
	if err != nil {
		return nil, err
	}

	if version == "" {
		version = found.version
	}

	if err := checkPin(source, found); err != nil {
		return nil, err
	}

	return &Resolved{
		Name: name, Version: version, ArchiveDigest: found.archive, ManifestDigest: found.digest,
		location: base + "/blobs/", size: found.size, signature: found.signature,
	}, nil
}

// checkPin checks that a pinned manifest is of the wanted version.
func checkPin(source *Source, found *artifact) error {
	if source.Digest == "" || source.Version == "" || found.version == "" {
		return nil
	}

	if at, err := choose([]string{found.version}, source.Version); err != nil {
		return err
	} else if at < 0 {
		return fail(DigestMismatch, "%s with digest %s is version %s, but chart.version wants %s", source.Chart, source.Digest, found.version, source.Version)
	}

	return nil
}

// Tags cannot hold a plus sign; Helm writes an underscore instead.
func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

// manifest returns what the manifest under a tag or digest says, from the cache
// if the registry says that it is the same.
func (f *Fetcher) manifest(ctx context.Context, s *session, source *Source, base, reference string) (*artifact, error) {
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

	f.cache.put(key(digest), found, int64(len(key(digest)))+tarBlock)

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

// downloadBlob fetches the archive of a chart from a registry.
func (f *Fetcher) downloadBlob(ctx context.Context, s *session, resolved *Resolved) ([]byte, error) {
	if resolved.size > f.options.MaxArchiveBytes {
		return nil, tooLarge("chart archive", resolved.fullLocation(), f.options.MaxArchiveBytes)
	}

	release, err := f.downloads.enter(ctx, s.host)
	if err != nil {
		return nil, err
	}
	defer release()

	s.host = registryHost(s.host)

	return s.fetch(ctx, resolved.fullLocation(), nil, f.options.MaxArchiveBytes, "chart archive")
}

// downloadSignature fetches the provenance file of a chart from a registry.
func (f *Fetcher) downloadSignature(ctx context.Context, s *session, resolved *Resolved) ([]byte, error) {
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
func (s *session) fetch(ctx context.Context, location string, header http.Header, limit int64, what string) ([]byte, error) {
	response, err := s.registry(ctx, http.MethodGet, location, header)
	if err != nil {
		return nil, err
	}
	defer discard(response)

	if response.StatusCode != http.StatusOK {
		return nil, s.refused(response, what)
	}

	return s.read(ctx, response, limit, what)
}
