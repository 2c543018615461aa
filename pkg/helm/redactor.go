package helm

import (
	"sync"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
)

// redactor is what has to be kept out of the messages of one action: values, and
// the credentials that lead to the cluster. It grows when an action finds older
// values. It is safe for concurrent use.
type redactor struct {
	scrub func(text string) string // takes the credentials out; nil if there are none

	mu     sync.RWMutex
	values values.Values
}

// redactorFor keeps values and the client's own credentials out of messages.
func (c *Client) redactorFor(merged values.Values) *redactor {
	return &redactor{scrub: c.scrub, values: merged}
}

// scrub takes the client's credentials out of a text.
func (c *Client) scrub(text string) string {
	if c.target.Scrub == nil {
		return text
	}

	return c.target.Scrub(text)
}

// redact makes a text fit for conditions and logs.
func (d *redactor) redact(text string) string {
	if d == nil {
		return values.Values{}.Redact(text)
	}

	// First, or a value that is a part of a credential would leave the rest of it.
	if d.scrub != nil {
		text = d.scrub(text)
	}

	d.mu.RLock()
	defer d.mu.RUnlock()

	return d.values.Redact(text)
}

// add keeps the values of an older revision out of messages, too. Which of them
// came from a Secret is not known any more: all count that are not among today's
// values that did not. It returns the size of what is kept for that beside what was
// kept before.
func (d *redactor) add(config map[string]any) (added foreign.Size) {
	d.mu.Lock()
	defer d.mu.Unlock()

	d.values, added = d.values.WithOlder(config)

	return added
}
