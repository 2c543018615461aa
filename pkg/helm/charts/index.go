package charts

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
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
