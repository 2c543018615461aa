package e2e

import (
	"fmt"
	"net/http"
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

// A repository that sends a gigabyte, as index or as chart, is refused in time, and most of it is not read. What the
// refusal costs in memory is held by the tests of the charts package, where nothing else runs beside it.
func TestHelmReleaseGigabyte(t *testing.T) {
	t.Parallel()

	const (
		mebibyte = 1 << 20
		// buffered is what the kernel may hold of a connection that is read slowly: it sizes the receiver's buffer, which
		// may grow to 32 MiB (the last value of net.ipv4.tcp_rmem), and the sender's.
		buffered = 64
	)

	r := newReleasing(t)

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

		if got := sent.Load() / mebibyte; got > test.limit+buffered {
			t.Errorf("%s: %d MiB were sent", test.name, got)
		}

		r.wantRecords(test.name)
	}
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
	r.handled("ohr", "app", "after the rotation")
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
