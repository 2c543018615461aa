package embeddedetcd_test

import (
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"
)

// TestMemoryOfAStart: the log of many large writes of one key is not read into memory as a whole.
func TestMemoryOfAStart(t *testing.T) {
	const (
		writes, size = 400, 256 << 10
		bound        = 100 << 20 // the writes have as much, and were read into more
	)

	dir := t.TempDir()
	server := start(t, dir)
	client := connect(t, server)

	for range writes {
		put(t, client, "key", strings.Repeat("x", size))
	}

	stop(t, server)
	client.Close()
	runtime.GC()

	before, peak := heap(), uint64(0)
	done, sampled := make(chan struct{}), make(chan struct{})

	go func() {
		defer close(sampled)

		for {
			runtime.GC()

			peak = max(peak, heap())

			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()

	again := start(t, dir)

	close(done)
	<-sampled
	stop(t, again)

	if peak > before+bound {
		t.Errorf("a start takes %d bytes of heap", peak-before)
	}
}

// heap is what is on the heap, in bytes.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)

	return sample[0].Value.Uint64()
}
