package env

import (
	"bytes"
	"sync"
)

// lineBuffer collects the output of a command that another goroutine looks at meanwhile.
type lineBuffer struct {
	mu      sync.Mutex
	content bytes.Buffer
}

// Write implements io.Writer; it never fails.
func (b *lineBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.content.Write(p)
}

// count returns the number of whole lines so far.
func (b *lineBuffer) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()

	return bytes.Count(b.content.Bytes(), []byte("\n"))
}

// tail returns the last lines.
func (b *lineBuffer) tail(lines int) string {
	b.mu.Lock()
	defer b.mu.Unlock()

	all := bytes.Split(bytes.TrimRight(b.content.Bytes(), "\n"), []byte("\n"))
	if len(all) > lines {
		all = all[len(all)-lines:]
	}

	return string(bytes.Join(all, []byte("\n")))
}
