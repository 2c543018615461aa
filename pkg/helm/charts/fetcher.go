package charts

import (
	"cmp"
	"container/list"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
)

// freshness is how long the index of a repository, and the chart that a registry has under a version, count without being asked for
// again, so that a hundred releases of one chart ask once.
const freshness = 30 * time.Second

// cacheBytes is what the cache of indexes and charts holds.
const cacheBytes = 48 << 20

// Fetcher finds and downloads charts. It is safe for concurrent use.
type Fetcher struct {
	options   Options
	cache     *cache
	signed    *cache // what was found to be signed; apart, so that charts do not push it out
	downloads *downloads
	choosing  *limiter.Limiter[string] // versions of charts, by tenant
	flights   singleflight.Group
	now       func() time.Time
}

// New makes a Fetcher.
func New(options Options) *Fetcher {
	options.MaxIndexBytes = cmp.Or(options.MaxIndexBytes, DefaultMaxIndexBytes)
	options.MaxArchiveBytes = cmp.Or(options.MaxArchiveBytes, DefaultMaxArchiveBytes)
	options.MaxUnpackedBytes = cmp.Or(options.MaxUnpackedBytes, DefaultMaxUnpackedBytes)
	options.Timeout = cmp.Or(options.Timeout, DefaultTimeout)
	options.ParallelDownloads = cmp.Or(options.ParallelDownloads, DefaultParallelDownloads)

	if options.Renderers == nil {
		options.Renderers = render.New(render.Options{})
	}

	if options.Now == nil {
		options.Now = time.Now
	}

	return &Fetcher{
		options: options, cache: newCache(cacheBytes),
		signed: newCache(signedBytes), downloads: newDownloads(options.ParallelDownloads),
		choosing: limiter.New(limiter.Limits[string]{PerKey: 1}), now: options.Now,
	}
}

// Resolve says which chart a source means now, and checks its provenance if there
// is a keyring. It downloads the chart only if nothing else tells its digest.
// Errors are *Error.
func (f *Fetcher) Resolve(ctx context.Context, source Source) (found *Resolved, err error) {
	resolve := f.resolveRepository
	if source.IsOCI() {
		resolve = f.resolveOCI
	}

	err = f.with(ctx, &source, func(ctx context.Context, s *sourceClient) error {
		if found, err = resolve(ctx, s, &source); err != nil {
			return err
		}

		return f.verify(ctx, s, &source, found)
	})
	if err != nil {
		return nil, err
	}

	return found, nil
}

// Open returns the archive of a chart that Resolve found with the same source:
// of the right digest, not larger than allowed even when it is unpacked, and
// signed by a key of the keyring if there is one. Errors are *Error.
func (f *Fetcher) Open(ctx context.Context, source Source, resolved *Resolved) (*Archive, error) {
	err := f.with(ctx, &source, func(ctx context.Context, s *sourceClient) error {
		if err := f.verify(ctx, s, &source, resolved); err != nil {
			return err
		}

		_, err := f.archive(ctx, s, &source, resolved)

		return err
	})
	if err != nil {
		return nil, err
	}

	return &Archive{fetcher: f, source: source, resolved: *resolved}, nil
}

// Keeps reports whether Open and Archive would find the chart here, for the while. It asks nobody, so what needs a signature does not
// count.
func (f *Fetcher) Keeps(source Source, resolved *Resolved) bool {
	return source.Keyring == nil && f.cache.get(archiveKey(&source, resolved.ArchiveDigest)) != nil
}

// with does something with a source, which has a client for the while. Its errors say nothing of the credentials.
func (f *Fetcher) with(ctx context.Context, source *Source, do func(context.Context, *sourceClient) error) error {
	ctx, cancel := context.WithTimeout(ctx, f.options.Timeout)
	defer cancel()

	s, err := f.newSourceClient(source)
	if err != nil {
		return source.Credentials.removeFrom(err)
	}
	defer s.close()

	return source.Credentials.removeFrom(do(ctx, s))
}

// archiveKey is what an archive is cached under.
func archiveKey(source *Source, digest string) string {
	return "archive/" + source.scope() + "/" + digest
}

// archive returns a checked archive, from the cache if it is there.
func (f *Fetcher) archive(ctx context.Context, s *sourceClient, source *Source, resolved *Resolved) ([]byte, error) {
	key := archiveKey(source, resolved.ArchiveDigest)
	if kept, ok := f.cache.get(key).([]byte); ok {
		return kept, nil
	}

	value, err := f.once(ctx, key, resolved.fullLocation(), func(ctx context.Context) (any, error) {
		// Somebody else's download may have ended since.
		if kept, ok := f.cache.get(key).([]byte); ok {
			return kept, nil
		}

		return f.downloadChecked(ctx, s, source, resolved)
	})
	if err != nil {
		return nil, err
	}

	return value.([]byte), nil //nolint:forcetypeassert // the function above returns nothing else
}

// downloadChecked downloads an archive, checks it, and keeps it.
func (f *Fetcher) downloadChecked(ctx context.Context, s *sourceClient, source *Source, resolved *Resolved) ([]byte, error) {
	if resolved.location == "" {
		return nil, resolved.unnamed()
	}

	download := f.download
	if resolved.ManifestDigest != "" {
		download = f.downloadBlob
	}

	data, done, err := download(ctx, s, resolved)
	if err != nil {
		return nil, err
	}
	defer done()

	if got := digestOf(data); got != resolved.ArchiveDigest {
		return nil, fail(DigestMismatch, "chart %s %s has digest %s, expected %s: it was replaced or damaged on the way", resolved.Name,
			resolved.Version, got, resolved.ArchiveDigest)
	}

	return data, f.keep(source, resolved.ArchiveDigest, data)
}

// keep puts an archive into the cache. Nothing else does: what comes out of the
// cache is not larger than allowed when it is unpacked.
func (f *Fetcher) keep(source *Source, digest string, data []byte) error {
	if err := checkSize(data, f.options.MaxUnpackedBytes); err != nil {
		return err
	}

	f.cache.put(archiveKey(source, digest), data, int64(len(data)))

	return nil
}

// counts reports whether what was asked then counts for a source now.
func (f *Fetcher) counts(asked time.Time, source *Source) bool {
	return f.now().Sub(asked) < freshness && !asked.Before(source.AskedAfter)
}

// askOnce runs ask for the first of all who want to know the same of a source at the same time. Who wants to know more than what
// is on its way does not join it.
func (f *Fetcher) askOnce(ctx context.Context, key, location string, source *Source, ask func(context.Context) (any, error)) (any, error) {
	if !source.AskedAfter.IsZero() {
		key += source.AskedAfter.Format(time.RFC3339Nano)
	}

	return f.once(ctx, key, location, ask)
}

// once runs fetch for the first of all who want the same at the same time. It
// is not the first one's context that bounds it: others wait for it, too. If it
// takes too long, all are told the same of the location.
func (f *Fetcher) once(ctx context.Context, key, location string, fetch func(context.Context) (any, error)) (any, error) {
	result := f.flights.DoChan(key, func() (found any, err error) {
		// Here nobody else could catch it: what a server sends must not end the controller.
		defer func() {
			if cause := recover(); cause != nil {
				found, err = nil, fail(Invalid, "the repository sends something that the controller cannot cope with (panic of type %T)", cause)
			}
		}()

		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.options.Timeout)
		defer cancel()

		return fetch(ctx)
	})

	select {
	case <-ctx.Done():
		return nil, explain(ctx.Err(), shownText(location))
	case got := <-result:
		return got.Val, got.Err
	}
}

// cache keeps what was used last, up to a total cost. It is safe for concurrent use.
type cache struct {
	mu      sync.Mutex
	limit   int64
	total   int64
	order   *list.List // of *cached, the last used first
	entries map[string]*list.Element
}

type cached struct {
	key   string
	value any
	cost  int64
}

func newCache(limit int64) *cache {
	return &cache{limit: limit, order: list.New(), entries: map[string]*list.Element{}}
}

// get returns what is kept under a key, or nil.
func (c *cache) get(key string) any {
	c.mu.Lock()
	defer c.mu.Unlock()

	element, ok := c.entries[key]
	if !ok {
		return nil
	}

	c.order.MoveToFront(element)

	return element.Value.(*cached).value //nolint:forcetypeassert // the list holds nothing else
}

// put keeps a value and drops others that were not used for longest. A value that is larger than the
// whole cache is not kept.
func (c *cache) put(key string, value any, cost int64) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if element, ok := c.entries[key]; ok {
		c.drop(element)
	}

	if cost > c.limit {
		return
	}

	c.entries[key] = c.order.PushFront(&cached{key: key, value: value, cost: cost})
	c.total += cost

	for c.total > c.limit {
		c.drop(c.order.Back())
	}
}

func (c *cache) drop(element *list.Element) {
	entry := c.order.Remove(element).(*cached) //nolint:forcetypeassert // the list holds nothing else
	delete(c.entries, entry.key)
	c.total -= entry.cost
}

// smallBytes is how much of an answer is read without one of the slots for
// large ones.
const smallBytes = 1 << 20

// downloads limits what is on its way at once: so much of one host, and so many
// large answers in all. The second limit is what bounds memory; a slot of it is
// taken only when an answer has shown that it is large, so that a host that hangs,
// or has little to say, takes none from the others. It is safe for concurrent use.
type downloads struct {
	hosts *limiter.Limiter[string]
	large *limiter.Limiter[struct{}]
}

func newDownloads(large int) *downloads {
	return &downloads{
		// Half of the slots, so that one host never has all of them.
		hosts: limiter.New(limiter.Limits[string]{PerKey: int64(max(1, large/2))}),
		large: limiter.New(limiter.Limits[struct{}]{Total: int64(large)}),
	}
}

// enter waits for a slot of a host; release gives it back.
func (d *downloads) enter(ctx context.Context, host string) (release func(), err error) {
	release, err = d.hosts.Acquire(ctx, host, 1)
	if err != nil {
		return nil, fail(Timeout, "%s is too slow: this download waited in vain for others from there", host)
	}

	return release, nil
}

// enterLarge waits for one of the slots for large answers.
func (d *downloads) enterLarge(ctx context.Context) (release func(), err error) {
	release, err = d.large.Acquire(ctx, struct{}{}, 1)
	if err != nil {
		return nil, fail(Timeout, "too many large charts and indexes are being downloaded; this one waited in vain")
	}

	return release, nil
}
