package charts

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

const (
	// maxProvenanceBytes is the largest provenance file.
	maxProvenanceBytes = 1 << 20
	// signedBytes is how much is remembered of what was found to be signed: some ten thousand charts.
	signedBytes = 1 << 20
)

// verify checks with the keyring, if there is one, that a chart is signed. A
// provenance file names the digest of the archive, so the archive itself is not
// needed: what is deployed already is checked without a download of the chart.
// What was found to be signed is remembered for as long as the process runs.
func (f *Fetcher) verify(ctx context.Context, s *sourceClient, source *Source, resolved *Resolved) error {
	if source.Keyring == nil {
		return nil
	}

	key := sum(source.scope(), resolved.Name, resolved.Version, resolved.ArchiveDigest, resolved.location, string(source.Keyring))
	if f.signed.get(key) != nil {
		return nil
	}

	if resolved.location == "" {
		return resolved.unnamed()
	}

	var (
		file []byte
		err  error
	)

	if resolved.ManifestDigest != "" {
		file, err = f.downloadSignature(ctx, s, resolved)
	} else {
		file, err = s.provenance(ctx, resolved)
	}

	if err != nil {
		return err
	}

	wanted := render.Provenance{Name: resolved.Name, Version: resolved.Version, Digest: resolved.ArchiveDigest, Files: fileNames(resolved)}
	if err := f.options.Renderers.CheckProvenance(ctx, source.Tenant, wanted, source.Keyring, file); err != nil {
		return explainProvenance(resolved, err)
	}

	f.signed.put(key, true, int64(len(key)))

	return nil
}

// fileNames are the names under which a provenance file may list the archive.
func fileNames(resolved *Resolved) []string {
	names := []string{resolved.Name + "-" + resolved.Version + ".tgz"}
	if resolved.ManifestDigest != "" {
		return names
	}

	// Without a query, which is no part of a file's name.
	if location, err := url.Parse(resolved.location); err == nil && path.Base(location.Path) != names[0] {
		names = append(names, path.Base(location.Path))
	}

	return names
}

// explainProvenance says why a provenance file does not count.
func explainProvenance(resolved *Resolved, err error) error {
	about := fmt.Sprintf("chart %s %s", resolved.Name, resolved.Version)

	var failure *render.Failure
	if errors.As(err, &failure) {
		return fail(Unverified, "%s: %s", about, redact.Line(failure.Text))
	}

	return explainWorker(err, about+": its provenance file")
}
