package charts

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
)

// index is what is kept of a repository's index.
type index struct {
	*render.Index

	etag      string
	modified  string
	fetchedAt time.Time // when the repository was asked
}

// readIndex has a worker read an index.
func (f *Fetcher) readIndex(ctx context.Context, source *Source, text []byte, at string) (*index, error) {
	read, err := f.options.Renderers.ReadIndex(ctx, source.Tenant, text)

	var failure *render.Failure

	switch {
	case err == nil:
		return &index{Index: read}, nil
	case !errors.As(err, &failure):
		return nil, explainWorker(err, at+": the index")
	case failure.Stage == render.StageSize:
		return nil, fail(TooLarge, "%s: the index %s", at, redact.Line(failure.Text))
	default:
		return nil, fail(Invalid, "index.yaml of the repository is no chart index")
	}
}

// explainWorker says why a worker gave no answer about a text. What is said continues a sentence that begins with the
// name of the text.
func explainWorker(err error, text string) error {
	var refusal *render.RefusedError

	switch {
	case errors.As(err, &refusal):
		return fail(Refused, "%s: %s", text, refusal)
	case errors.Is(err, render.ErrBusy):
		return fail(Timeout, "too many charts and indexes are being read; this one waited in vain")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fail(Timeout, "%s was not read in time", text)
	default:
		return fail(Unavailable, "%s: %s", text, redact.Line(err.Error()))
	}
}

// cost is about how many bytes the index takes in memory.
func (i *index) cost() int64 {
	const itself = 128

	return itself + i.Bytes + render.TextCost(i.etag) + render.TextCost(i.modified)
}

// index returns a repository's index, and whether the repository was asked for it. One that was fetched a moment ago counts
// if newest is not set; an older one is kept if the repository says that it did not change.
func (f *Fetcher) index(ctx context.Context, s *sourceClient, source *Source, newest bool) (found *index, asked bool, err error) {
	key := "index/" + source.scope()

	kept, _ := f.cache.get(key).(*index)
	if kept != nil && !newest && f.counts(kept.fetchedAt, source) {
		return kept, false, nil
	}

	value, err := f.askOnce(ctx, key, indexURL(source), source, func(ctx context.Context) (any, error) {
		// Somebody else's question may have ended since.
		latest, _ := f.cache.get(key).(*index)
		if latest != nil && latest != kept && f.counts(latest.fetchedAt, source) {
			return latest, nil
		}

		fetched, err := f.fetchIndex(ctx, s, source, latest)
		if err != nil {
			return nil, err
		}

		f.cache.put(key, fetched, fetched.cost())

		return fetched, nil
	})
	if err != nil {
		return nil, true, err
	}

	return value.(*index), true, nil //nolint:forcetypeassert // the function above returns nothing else
}

// indexURL is where the index of a repository is.
func indexURL(source *Source) string {
	return strings.TrimSuffix(source.Repository, "/") + "/index.yaml"
}

func (f *Fetcher) fetchIndex(ctx context.Context, s *sourceClient, source *Source, kept *index) (*index, error) {
	begun, header := f.now(), http.Header{}

	if kept != nil && kept.etag != "" {
		header.Set("If-None-Match", kept.etag)
	}

	if kept != nil && kept.modified != "" {
		header.Set("If-Modified-Since", kept.modified)
	}

	release, err := f.downloads.enter(ctx, s.host)
	if err != nil {
		return nil, err
	}
	defer release()

	response, err := s.do(ctx, http.MethodGet, indexURL(source), header)
	if err != nil {
		return nil, err
	}
	defer discard(response)

	if response.StatusCode == http.StatusNotModified && kept != nil {
		again := *kept
		again.fetchedAt = begun

		return &again, nil
	}

	if response.StatusCode != http.StatusOK {
		return nil, s.refused(response, "chart index")
	}

	data, done, err := s.readLarge(ctx, response, f.options.MaxIndexBytes, "index")
	if err != nil {
		return nil, err
	}
	defer done()

	parsed, err := f.readIndex(ctx, source, data, shown(response.Request.URL))
	if err != nil {
		return nil, err
	}

	parsed.etag, parsed.modified = response.Header.Get("ETag"), response.Header.Get("Last-Modified")
	parsed.fetchedAt = begun

	return parsed, nil
}

const (
	// maxCompared is how much may be compared to choose one version, in bytes: each version counts once for each part of
	// the range, with versionOverhead in addition to its length. The library makes an error text for each part that does
	// not hold, so that this takes a third of a second. 100,000 versions as short as most may be compared with two parts,
	// 10,000 with twenty; charts with more than some thousand versions are rare.
	maxCompared     = 8 << 20
	versionOverhead = 24
	// comparedAtOnce is how many versions are compared before the context is looked at again.
	comparedAtOnce = 1000
)

// choice finds the version that is asked for: an exact match of the text, else the newest version inside the range;
// empty means the newest stable one. Versions that are no semantic versions match exactly only.
type choice struct {
	source *Source
	slots  *limiter.Limiter[string] // to compare, by tenant

	constraint *semver.Constraints // nil if it is no range that is asked for
	parts      int                 // of the constraint
	compared   int                 // so far, as maxCompared counts
	exact      bool                // the exact match was found
	newest     *semver.Version     // of those so far; nil if none fits
	failed     error               // why only an exact match can be found
}

// newChoice begins a choice for a source.
func (f *Fetcher) newChoice(source *Source) *choice {
	c := &choice{source: source, slots: f.choosing}

	constraint, err := semver.NewConstraint(cmp.Or(source.Version, "*"))
	if err != nil {
		c.failed = fail(Invalid, "chart.version %q is neither a version of the chart nor a range of versions", source.Version)

		return c
	}

	c.constraint = constraint
	// The text that the library makes of it has a space between all parts.
	c.parts = len(strings.Fields(strings.ReplaceAll(constraint.String(), "||", " ")))

	return c
}

// among returns the index of the one of these versions that is better than all that were looked at before; -1 if there is
// none. The error is an *Error, and says that ctx ended.
func (c *choice) among(ctx context.Context, versions iter.Seq2[int, string]) (int, error) {
	if c.exact {
		return -1, nil
	}

	before := c.compared

	for i, version := range versions {
		if version == c.source.Version && version != "" {
			c.exact = true

			return i, nil
		}

		c.compared += c.parts * weight(version)
	}

	if c.failed == nil && c.compared > maxCompared {
		c.failed = fail(TooLarge, "chart %s has too many versions for a range of this many parts (%d): "+
			"set chart.version to one version, as the repository writes it, or to a range of fewer parts", c.source.Chart, c.parts)
	}

	if c.failed != nil || c.compared == before {
		return -1, nil
	}

	return c.compare(ctx, versions)
}

// weight is how much a comparison of a version with one part of a range counts. What is no version at first sight, such as
// the tag of a signature, costs nothing.
func weight(version string) int {
	if number := strings.TrimPrefix(version, "v"); number == "" || number[0] < '0' || number[0] > '9' {
		return 0
	}

	// The library reads none that is longer.
	return versionOverhead + min(len(version), semver.MaxVersionLen)
}

// compare is among for a range. A tenant has one processor for it, however many charts it asks for.
func (c *choice) compare(ctx context.Context, versions iter.Seq2[int, string]) (int, error) {
	release, err := c.slots.Acquire(ctx, c.source.Tenant, 1)
	if err != nil {
		return -1, fail(Timeout, "too many versions of charts are being compared; this chart waited in vain")
	}
	defer release()

	best := -1

	for i, text := range versions {
		if i%comparedAtOnce == 0 && ctx.Err() != nil {
			return -1, fail(Timeout, "the versions of the chart were not compared in time")
		}

		version, err := semver.NewVersion(text)
		if err != nil || c.newest != nil && !version.GreaterThan(c.newest) || !c.constraint.Check(version) {
			continue
		}

		best, c.newest = i, version
	}

	return best, nil
}

// failure returns why it is not known which version is the right one; nil if it is known, also if there is none.
func (c *choice) failure() error {
	if c.exact {
		return nil
	}

	return c.failed
}

// choose makes a choice among all versions there are.
func choose(ctx context.Context, c *choice, versions iter.Seq2[int, string]) (int, error) {
	at, err := c.among(ctx, versions)
	if err == nil {
		err = c.failure()
	}

	return at, err
}

// isExact reports whether a text is one version and no range.
func isExact(text string) bool {
	_, err := semver.StrictNewVersion(strings.TrimPrefix(text, "v"))

	return err == nil
}

// describe says in words which version was asked for.
func describe(wanted string) string {
	if wanted == "" {
		return "stable version"
	}

	return "version " + wanted
}
