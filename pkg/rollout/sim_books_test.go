package rollout_test

import "time"

// The events that the simulation reports to the checker.

func (c *checker) look(now time.Time) {
	c.looked = now

	for _, b := range c.books {
		b.wasWorking, b.wasHere, b.could, b.wasFailed = b.working, true, !b.paused, b.failed
	}

	c.recordProved(now)
}

func (c *checker) made(one *cluster, _ time.Time) {
	c.books[one.name] = &book{stage: one.stage, has: one.asks, cluster: one}
}

func (c *checker) gone(name string) { delete(c.books, name) }

// well records that a cluster is healthy again with the content it has.
func (c *checker) well(name string, now time.Time) {
	b := c.books[name]
	if b == nil {
		return
	}

	b.wellSince = now
}

func (c *checker) unwell(name string) {
	if b := c.books[name]; b != nil {
		b.wellSince = time.Time{}
	}
}

func (c *checker) pause(name string, on bool) {
	if b := c.books[name]; b != nil {
		b.paused = on
	}
}

func (c *checker) relabelled(name string, stage int) {
	if b := c.books[name]; b != nil {
		b.stage, b.wasHere = stage, false
	}
}

// done records that a turn ended successfully.
func (c *checker) done(name string, now time.Time) {
	c.dones++

	b := c.books[name]
	if b.failed {
		c.fixes++
	}

	c.ends(b, now)
	b.failed = false
}

func (c *checker) failed(name string, now time.Time) {
	c.failures++

	b := c.books[name]
	c.ends(b, now)
	b.failed, b.failedAt, b.wellSince = true, now, time.Time{}
}

func (c *checker) ends(b *book, now time.Time) {
	b.working = false

	if b.patching {
		c.quiet[b.stage], b.patching = now, false
	}
}

// mended records that a failed cluster became healthy without another change.
func (c *checker) mended(name string, _ time.Time) {
	c.fixes++
	c.books[name].failed = false
}

func (c *checker) hold(on bool, _ time.Time) { c.held = on }
