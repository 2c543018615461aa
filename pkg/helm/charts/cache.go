package charts

import (
	"container/list"
	"sync"
)

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
