package foreign

import (
	"bytes"
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// The memory that reading YAML takes. A parsed value takes some 200 bytes beside its text, and its text is there
// twice. (Measured: a text of 1 MiB that consists of `a,` takes 100 MiB.)
const (
	bytesPerNode = 200
	copies       = 2
)

// budgetBytes is what the texts that are being parsed at the same time may take together, in bytes. One text that
// takes more has the budget for itself.
const budgetBytes = 96 << 20

// parsing is the budget of the process: the memory is the process's, too.
//
//nolint:gochecknoglobals // see above
var parsing = semaphore.NewWeighted(budgetBytes)

// maxParsed is how many values a YAML text may have before its aliases are expanded, whatever its limits are: only the
// parser can count them, and that takes 200 MiB for this many.
const maxParsed = 1_000_000

// mayParse refuses a text that could have many more values than it may, before it is parsed.
func mayParse(text []byte, limits Limits) error {
	// Text inside of a value has punctuation, too: dashboards and scripts have some for every ten bytes.
	const punctuation = 4

	if mostNodes(text) > min(punctuation*limits.Nodes, maxParsed) {
		return &LimitError{Nodes, limits.Nodes}
	}

	return nil
}

// reserve waits until a YAML text may be parsed, and returns what ends that. Its error is that of ctx.
func reserve(ctx context.Context, text []byte) (func(), error) {
	cost := min(int64(len(text))*copies+int64(mostNodes(text))*bytesPerNode, budgetBytes)

	if err := parsing.Acquire(ctx, cost); err != nil {
		return nil, fmt.Errorf("wait until the text may be read: %w", err)
	}

	return func() { parsing.Release(cost) }, nil
}

// mostNodes is how many values a YAML text can have at most, without its aliases: one begins after each of these
// characters, whatever the text around them is.
func mostNodes(text []byte) int {
	most := 1
	for _, indicator := range []byte(",:-?[{\n\r") {
		most += bytes.Count(text, []byte{indicator})
	}

	return min(most, len(text)+1)
}
