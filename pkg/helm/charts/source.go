package charts

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path"
	"strings"
	"time"
)

// ociScheme begins the URL of a chart in a registry.
const ociScheme = "oci://"

// Source says where a chart is and which one.
type Source struct {
	// Repository is the http or https URL of a chart repository; empty for an OCI chart.
	Repository string
	// Chart is the chart's name in the repository, or its oci:// URL without tag or digest.
	Chart string
	// Version is a version or a range of versions. Empty means the newest stable one.
	Version string
	// Digest pins the chart: sha256:<hex> of the archive, or of the OCI manifest. Empty pins nothing.
	Digest string
	// Credentials are sent to the repository's own host only. The zero value sends none.
	Credentials Credentials
	// CA holds PEM certificates that are trusted in addition to the system's. May be empty.
	CA []byte
	// Keyring is the public OpenPGP keyring, binary or armoured, that the chart's provenance is checked
	// with. Nil checks nothing.
	Keyring []byte
	// AskedAfter is since when the repository or registry has to have been asked; zero: what counts for others counts.
	AskedAfter time.Time
	// Tenant shares the slots of the renderers with all sources of the same one. It says nothing about the chart.
	Tenant string
}

// IsOCI reports whether the chart is in a registry; Repository is not used then.
func (s *Source) IsOCI() bool { return strings.HasPrefix(s.Chart, ociScheme) }

// Host is the host (with its port, if it is written) of the repository or registry; empty if the
// source has none.
func (s *Source) Host() string {
	location := s.Repository
	if s.IsOCI() {
		location = s.Chart
	}

	parsed, err := url.Parse(location)
	if err != nil {
		return ""
	}

	return parsed.Host
}

// scope separates what was fetched with one set of credentials from what was fetched with another:
// who has no access must not find a chart in the cache either.
func (s *Source) scope() string {
	return sum(s.Repository, s.Host(), s.Credentials.Username, s.Credentials.Password, string(s.CA))
}

// sum is a hash over texts that cannot be confused with one another.
func sum(texts ...string) string {
	hash := sha256.New()

	for _, text := range texts {
		inner := sha256.Sum256([]byte(text))
		hash.Write(inner[:])
	}

	return hex.EncodeToString(hash.Sum(nil))
}

// digestOf is the digest of a text in the form sha256:<hex>.
func digestOf(data []byte) string {
	hash := sha256.Sum256(data)

	return "sha256:" + hex.EncodeToString(hash[:])
}

// Resolved is the chart that a Source meant when it was looked up.
type Resolved struct {
	// Name of the chart as it is asked for: the last part of an OCI URL.
	Name string
	// Version of the chart.
	Version string
	// ArchiveDigest is sha256:<hex> of the chart's archive.
	ArchiveDigest string
	// ManifestDigest is sha256:<hex> of the OCI manifest; empty for a repository.
	ManifestDigest string

	location  string // URL of the archive; of a registry only what comes before the digest
	size      int64  // of the archive if it is known, else 0
	signature string // digest of the provenance layer of a registry; empty if there is none
}

// Known is a chart that Resolve found with the same source, and of which only this was written down: it is had only if it is
// kept here, because where it was is not known any more.
func Known(source Source, version, archiveDigest string) *Resolved {
	name := source.Chart
	if source.IsOCI() {
		name = path.Base(name)
	}

	return &Resolved{Name: name, Version: version, ArchiveDigest: archiveDigest}
}

// unnamed is the error of a chart of which it is not known where it is. The next Resolve finds out.
func (r *Resolved) unnamed() error {
	return fail(Unreachable, "chart %s %s is not kept here any more, and the repository did not answer when it was asked", r.Name, r.Version)
}

// fullLocation is the URL of the archive, of a registry too.
func (r *Resolved) fullLocation() string {
	if r.ManifestDigest != "" {
		return r.location + r.ArchiveDigest
	}

	return r.location
}
