package charts

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// indexFreshness is how long an index counts without being asked for again, so
// that a hundred releases of one repository ask once.
const indexFreshness = 30 * time.Second

// index is what is kept of a repository's index.
type index struct {
	charts    map[string][]indexEntry
	size      int64 // of charts, in bytes
	etag      string
	modified  string
	fetchedAt time.Time
}

// parseIndex reads an index; everything but the versions is dropped.
func parseIndex(ctx context.Context, data []byte, at string) (*index, error) {
	read, err := readIndex(ctx, data)

	var exceeded *foreign.LimitError

	switch {
	case ctx.Err() != nil:
		return nil, explain(ctx.Err(), at)
	case errors.As(err, &exceeded), errors.Is(err, errOtherForm), errors.Is(err, errKept):
		return nil, fail(TooLarge, "%s: the index %s", at, err)
	case err != nil || !read.entries:
		return nil, fail(Invalid, "index.yaml of the repository is no chart index")
	}

	return &index{charts: read.charts, size: read.kept}, nil
}

// cost is about how many bytes the index takes in memory.
func (i *index) cost() int64 {
	const itself = 128

	return itself + i.size + textCost(i.etag) + textCost(i.modified)
}

// index returns a repository's index. One that was fetched a moment ago counts
// if newest is not set; an older one is kept if the repository says that it did
// not change.
func (f *Fetcher) index(ctx context.Context, s *session, source *Source, newest bool) (*index, error) {
	key := "index/" + source.scope()
	kept, _ := f.cache.get(key).(*index)

	if kept != nil && !newest && f.now().Sub(kept.fetchedAt) < indexFreshness {
		return kept, nil
	}

	value, err := f.once(ctx, key, indexURL(source), func(ctx context.Context) (any, error) { return f.fetchIndex(ctx, s, source, kept) })
	if err != nil {
		return nil, err
	}

	fetched := value.(*index) //nolint:forcetypeassert // fetchIndex returns nothing else
	f.cache.put(key, fetched, fetched.cost())

	return fetched, nil
}

// indexURL is where the index of a repository is.
func indexURL(source *Source) string {
	return strings.TrimSuffix(source.Repository, "/") + "/index.yaml"
}

func (f *Fetcher) fetchIndex(ctx context.Context, s *session, source *Source, kept *index) (any, error) {
	header := http.Header{}

	if kept != nil && kept.etag != "" {
		header.Set("If-None-Match", kept.etag)
	}

	if kept != nil && kept.modified != "" {
		header.Set("If-Modified-Since", kept.modified)
	}

	leave, err := f.gate.enter(ctx, s.host)
	if err != nil {
		return nil, err
	}
	defer leave()

	response, err := s.do(ctx, http.MethodGet, indexURL(source), header)
	if err != nil {
		return nil, err
	}
	defer discard(response)

	if response.StatusCode == http.StatusNotModified && kept != nil {
		again := *kept
		again.fetchedAt = f.now()

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

	var parsed *index

	if err := f.gate.parse(ctx, func() (err error) { parsed, err = parseIndex(ctx, data, place(response.Request.URL)); return err }); err != nil {
		return nil, err
	}

	parsed.etag, parsed.modified = response.Header.Get("ETag"), response.Header.Get("Last-Modified")
	parsed.fetchedAt = f.now()

	return parsed, nil
}
