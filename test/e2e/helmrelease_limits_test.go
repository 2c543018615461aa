package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// endless sends up to a gigabyte, and counts it.
func endless(sent *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 1<<20)

		for range 1 << 10 {
			n, err := w.Write(chunk)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}
}

// A repository that sends a gigabyte, as index or as chart, is refused in time, and costs little memory.
func TestHelmReleaseGigabyte(t *testing.T) {
	t.Parallel()

	const mebibyte = 1 << 20

	r := newReleasing(t)
	before := r.memory()

	for _, test := range []struct {
		name, path string
		limit      int64 // of what is read, in MiB
	}{{"index", "/index.yaml", 48}, {"chart", "/demo-1.0.0.tgz", 16}} {
		var sent atomic.Int64

		repository := chartserver.StartRepository()
		t.Cleanup(repository.Close)
		repository.Add(chartserver.ConfigMapChart("demo", "1.0.0"))
		repository.Handle(test.path, endless(&sent))

		r.apply(strings.Replace(r.releaseOf(test.name, "1.0.0", "  interval: 1h"), r.charts.URL(), repository.URL(), 1))
		r.stalls(test.name, v1alpha1.ReasonChartTooLarge, fmt.Sprintf("limit of %d MiB", test.limit))

		// What is on its way in the network's buffers counts, too.
		if got := sent.Load() / mebibyte; got > test.limit+16 {
			t.Errorf("%s: %d MiB were sent", test.name, got)
		}

		r.wantRecords(test.name)
	}

	if got := (r.memory() - before) / mebibyte; got > 256 {
		t.Errorf("the controller has grown by %d MiB", got)
	}
}

// memory is what the controller takes now, in bytes.
func (r *releasing) memory() int64 {
	r.t.Helper()

	metrics, err := stack.Controller.Metrics(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}

	found := regexp.MustCompile(`(?m)^process_resident_memory_bytes (\S+)$`).FindStringSubmatch(metrics)
	if found == nil {
		r.t.Fatal("there is no metric of the memory")
	}

	bytes, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		r.t.Fatal(err)
	}

	return int64(bytes)
}

// A release goes on with a kubeconfig that an export has rotated: no revision, no download.
func TestHelmReleaseKubeconfigRotation(t *testing.T) {
	t.Parallel()

	r := newChain(t)
	before := r.run("get", "oke", "robot", "-o", "jsonpath={.status.kubeconfigHash}")
	r.run("patch", "oke", "robot", "--type=merge", "-p", `{"spec":{"ttl":"23h"}}`)
	r.wait("the rotation", func() error {
		if now := r.run("get", "oke", "robot", "-o", "jsonpath={.status.kubeconfigHash}"); now == before {
			return fmt.Errorf("the hash is still %s", now)
		}

		return nil
	})
	r.handled("app", "after the rotation")
	r.ready("ohr", "app")
	r.wantRecords("app", "1 deployed")

	if got := r.charts.Downloads(); got != 1 {
		t.Errorf("%d downloads, want 1", got)
	}

	// The new one is in use.
	r.apply(r.release("    values: {data: {greeting: rotated}}"))
	r.waitData("app", map[string]string{"chart": "1.0.0", "greeting": "rotated"})
	r.waitRecords("app", "1 superseded", "2 deployed")
}
