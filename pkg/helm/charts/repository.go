package charts

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// resolveRepository looks a chart up in the index of an HTTP repository.
func (f *Fetcher) resolveRepository(ctx context.Context, s *sourceClient, source *Source) (*Resolved, error) {
	entry, err := f.lookup(ctx, s, source)
	if err != nil {
		return nil, err
	}

	location, err := archiveURL(source.Repository, entry)
	if err != nil {
		return nil, err
	}

	resolved := &Resolved{Name: source.Chart, Version: entry.Version, ArchiveDigest: normalDigest(entry.Digest), location: location}

	switch {
	case source.excludes(entry):
		return nil, fail(DigestMismatch, "chart %s %s has digest %s in %s, but chart.digest wants %s", source.Chart, entry.Version,
			resolved.ArchiveDigest, source.Repository, source.Digest)
	case source.Digest != "":
		resolved.ArchiveDigest = source.Digest
	case resolved.ArchiveDigest == "":
		// An old index without digests: only the archive itself says what it is.
		archive, done, err := f.download(ctx, s, resolved)
		if err != nil {
			return nil, err
		}
		defer done()

		resolved.ArchiveDigest = digestOf(archive)

		if err := f.keep(source, resolved.ArchiveDigest, archive); err != nil {
			return nil, err
		}
	}

	return resolved, nil
}

// lookup finds the entry of the wanted version. A version that an index from a
// moment ago does not have, or has with another digest, may have been published since.
func (f *Fetcher) lookup(ctx context.Context, s *sourceClient, source *Source) (*render.Entry, error) {
	var entries []render.Entry

	for _, newest := range []bool{false, true} {
		index, asked, err := f.index(ctx, s, source, newest)
		if err != nil {
			return nil, err
		}

		entries = index.Charts[source.Chart]

		found, err := f.find(ctx, source, entries)
		if err != nil {
			return nil, err
		}

		if found != nil && (asked || !source.excludes(found)) {
			return found, nil
		}

		if asked {
			break
		}
	}

	if len(entries) == 0 {
		return nil, fail(NotFound, "repository %s has no chart %s", source.Repository, source.Chart)
	}

	return nil, fail(NotFound, "repository %s has no %s of chart %s", source.Repository, describe(source.Version), source.Chart)
}

// find is the entry of the wanted version; nil if there is none. With a digest it is one that has it, if one of the wanted versions
// does: the newest of a range may be newer than the digest.
func (f *Fetcher) find(ctx context.Context, source *Source, entries []render.Entry) (*render.Entry, error) {
	pinned := func(entry *render.Entry) bool {
		return source.Digest != "" && normalDigest(entry.Digest) == source.Digest
	}

	for _, candidate := range []func(*render.Entry) bool{pinned, func(*render.Entry) bool { return true }} {
		at, err := choose(ctx, f.newChoice(source), versionsOf(entries, candidate))
		if err != nil {
			return nil, err
		}

		if at >= 0 {
			return &entries[at], nil
		}
	}

	return nil, nil //nolint:nilnil // there is none, nothing failed
}

// excludes reports whether an entry is of another chart than the digest of the source says.
func (s *Source) excludes(entry *render.Entry) bool {
	digest := normalDigest(entry.Digest)

	return s.Digest != "" && digest != "" && digest != s.Digest
}

// versionsOf are the versions of those entries that are candidates.
func versionsOf(entries []render.Entry, candidate func(*render.Entry) bool) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i := range entries {
			if candidate(&entries[i]) && !yield(i, entries[i].Version) {
				return
			}
		}
	}
}

// archiveURL resolves the first URL of an entry against the repository's.
func archiveURL(repository string, entry *render.Entry) (string, error) {
	if entry.URL == "" {
		return "", fail(Invalid, "index.yaml of %s names no URL for version %s", repository, entry.Version)
	}

	base, err := url.Parse(strings.TrimSuffix(repository, "/") + "/")
	if err != nil {
		return "", fail(Invalid, "chart.repository is not a URL")
	}

	location, err := base.Parse(entry.URL)
	if err != nil || location.Scheme != "http" && location.Scheme != "https" || location.Host == "" {
		return "", fail(Invalid, "index.yaml of %s names a URL for version %s that is neither http nor https; for an OCI chart set chart: oci://...",
			repository, entry.Version)
	}

	if base.Scheme == "https" && location.Scheme != "https" {
		return "", fail(Invalid, "index.yaml of %s leads to the unencrypted %s", repository, shown(location))
	}

	return location.String(), nil
}

// normalDigest brings a digest of an index into the form sha256:<hex>; one of
// another algorithm counts as none.
func normalDigest(text string) string {
	const hexDigits = 64

	text = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(text), "sha256:"))
	if len(text) != hexDigits || strings.Trim(text, "0123456789abcdef") != "" {
		return ""
	}

	return "sha256:" + text
}

// download fetches the archive of a chart. It is not checked against any digest. Done ends its time as a large download,
// when it was checked.
func (f *Fetcher) download(ctx context.Context, s *sourceClient, resolved *Resolved) (data []byte, done func(), err error) {
	release, err := f.downloads.enter(ctx, hostOf(resolved.location))
	if err != nil {
		return nil, nil, err
	}
	defer release()

	response, err := s.do(ctx, http.MethodGet, resolved.location, nil)
	if err != nil {
		return nil, nil, err
	}
	defer discard(response)

	if response.StatusCode != http.StatusOK {
		return nil, nil, s.refused(response, "chart archive")
	}

	return s.readLarge(ctx, response, f.options.MaxArchiveBytes, "chart archive")
}

// hostOf is the host of a URL; empty if it has none.
func hostOf(location string) string {
	parsed, err := url.Parse(location)
	if err != nil {
		return ""
	}

	return strings.ToLower(parsed.Host)
}

// provenanceURL is where the provenance file of an archive is: next to it, with
// the query of the archive's own URL.
func provenanceURL(archive string) (string, error) {
	location, err := url.Parse(archive)
	if err != nil {
		return "", fail(Invalid, "the repository names a URL that cannot be used")
	}

	location.Path += ".prov"
	if location.RawPath != "" {
		location.RawPath += ".prov"
	}

	return location.String(), nil
}

// provenance fetches the provenance file of a chart in a repository.
func (s *sourceClient) provenance(ctx context.Context, resolved *Resolved) ([]byte, error) {
	location, err := provenanceURL(resolved.location)
	if err != nil {
		return nil, err
	}

	response, err := s.do(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, err
	}
	defer discard(response)

	if response.StatusCode == http.StatusNotFound {
		return nil, fail(Unverified, "chart %s %s has no provenance file", resolved.Name, resolved.Version)
	}

	if response.StatusCode != http.StatusOK {
		return nil, s.refused(response, "provenance file")
	}

	return s.read(ctx, response, maxProvenanceBytes, "provenance file")
}

// read returns the body of an answer, at most limit bytes of it.
func (s *sourceClient) read(ctx context.Context, response *http.Response, limit int64, what string) ([]byte, error) {
	data, done, err := s.readLarge(ctx, response, limit, what)
	if err != nil {
		return nil, err
	}

	done()

	return data, nil
}

// readLarge returns the body of an answer, at most limit bytes of it. While it is
// large it has one of the slots for that; done gives it back when the data is
// not needed any more.
func (s *sourceClient) readLarge(ctx context.Context, response *http.Response, limit int64, what string) (data []byte, done func(), err error) {
	at := shown(response.Request.URL)

	if response.ContentLength > limit {
		return nil, nil, tooLarge(what, at, limit)
	}

	release := func() {}

	defer func() {
		if err != nil {
			release()
		}
	}()

	var buffer bytes.Buffer

	for _, step := range []int64{min(smallBytes, limit), limit} {
		// One byte more than may be there tells that there is more.
		if _, err := io.Copy(&buffer, io.LimitReader(response.Body, step+1-int64(buffer.Len()))); err != nil {
			return nil, nil, explain(fmt.Errorf("read %s: %w", what, err), at)
		}

		switch size := int64(buffer.Len()); {
		case size > limit:
			return nil, nil, tooLarge(what, at, limit)
		case size <= step:
			return buffer.Bytes(), release, nil
		}

		entered, err := s.downloads.enterLarge(ctx)
		if err != nil {
			return nil, nil, err
		}

		release = entered

		if response.ContentLength > 0 {
			buffer.Grow(int(response.ContentLength) - buffer.Len() + bytes.MinRead)
		}
	}

	return nil, nil, tooLarge(what, at, limit)
}

func tooLarge(what, at string, limit int64) error {
	return fail(TooLarge, "%s: the %s is larger than the limit of %d MiB", at, what, limit>>20)
}

// discard ends an answer that is not read.
func discard(response *http.Response) {
	_, _ = io.CopyN(io.Discard, response.Body, maxErrorBytes)
	_ = response.Body.Close()
}

// refused explains an answer that is not the one that was asked for.
func (s *sourceClient) refused(response *http.Response, what string) error {
	at := shown(response.Request.URL)

	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		if s.credentials.empty() {
			return fail(Unauthorized, "%s wants credentials (HTTP %d): set authSecretRef", at, code)
		}

		return fail(Unauthorized, "%s does not accept the credentials of authSecretRef (HTTP %d)", at, code)
	case code == http.StatusNotFound || code == http.StatusGone:
		return fail(NotFound, "%s: there is no such %s (HTTP %d)", at, what, code)
	case code == http.StatusTooManyRequests || code >= http.StatusInternalServerError:
		return fail(Unreachable, "%s answers HTTP %d", at, code)
	default:
		return fail(Invalid, "%s answers HTTP %d instead of the %s", at, code, what)
	}
}
