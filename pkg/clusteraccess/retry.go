package clusteraccess

import "time"

const (
	// firstRetry and longestRetry bound when to retry with a cluster that does not answer.
	firstRetry   = 15 * time.Second
	longestRetry = 2 * time.Minute
	// retryPart is the part of its outage after which a cluster is tried again: what has failed for long is asked rarely,
	// and what comes back is used before the outage is a tenth longer.
	retryPart = 10
)

// record stores the result of a probe, or of a request that timed out, and returns who waited for the cluster to answer.
// The caller holds the lock, and calls them without it.
func (c *Cluster) record(found Identity, err error) (waited map[string]func()) {
	c.found, c.err, c.probed = found, err, c.now()

	switch {
	case err == nil:
		waited, c.waiting, c.failing = c.waiting, nil, time.Time{}
	case c.failing.IsZero():
		c.failing = c.probed
	}

	return waited
}

// retryAfter returns after which time a requester tries again, and wakes it earlier if the cluster answers another
// requester until then.
func (c *Cluster) retryAfter(requester string, wake func()) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.err == nil {
		return firstRetry
	}

	if c.waiting == nil {
		c.waiting = map[string]func(){}
	}

	c.waiting[requester] = wake

	return min(max(c.now().Sub(c.failing)/retryPart, firstRetry), longestRetry)
}
