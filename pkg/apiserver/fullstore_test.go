package apiserver_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

const (
	// These are environment variables: how many bytes TestMemoryOfFullStore stores, and the directory where. If the directory
	// has objects already, the test stores nothing.
	fullStoreBytes = "FULL_STORE_BYTES"
	fullStoreDir   = "FULL_STORE_DIR"
)

// TestMemoryOfFullStore measures the memory of a server whose limit is used up, in a process that does nothing else:
//
//	export FULL_STORE_BYTES=100663296 FULL_STORE_DIR=$(mktemp -d)
//	go test ./pkg/apiserver -run TestMemoryOfFullStore                                    # stores
//	GOMEMLIMIT=912680550 go test ./pkg/apiserver -run TestMemoryOfFullStore -count=1 -v   # starts on it, and lists eight times in parallel
//
// GOMEMLIMIT is 85 % of the container's memory, as the program sets it. It is no part of the suite, which asserts the same
// with less: TestMemoryOfLists, TestMemoryOfTables.
func TestMemoryOfFullStore(t *testing.T) {
	wanted, err := strconv.Atoi(os.Getenv(fullStoreBytes))
	if err != nil {
		t.Skipf("%s is not set", fullStoreBytes)
	}

	anonymous := watchResident(t)
	s := startServer(t, onDirectory(os.Getenv(fullStoreDir)), withConfig(func(config *apiserver.Config) {
		config.ListBytes = 96 << 20
		config.ListsWaitFor(2 * await.Limit)
	}))

	var objects int64

	if status, body := s.get(t, clusters+"?limit=1", asJSON); status != http.StatusOK {
		t.Fatalf("status %d", status)
	} else if bytes.Contains(body, []byte(`"items":[]`)) {
		for i := range wanted / len(large("c")) {
			s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, asJSON, large(fmt.Sprintf("c%d", i)))
		}

		return
	}

	await.Receive(t, "the objects are counted", s.ledger.Counted())

	objects = s.ledger.Stored("omniclusters", "default").Objects

	t.Logf("started with %d objects: peak %d MiB", objects, anonymous())

	for _, c := range [][2]string{{"", asJSON}, {"?pretty=true", asJSON}, {"", asYAML}, {"?includeObject=Object", asTable}} {
		length := s.readAll(t, 8, clusters+c[0], c[1])
		t.Logf("eight lists %s as %s of %d MiB: peak so far %d MiB", c[0], c[1], length>>20, anonymous())
	}
}

// watchResident returns the largest memory so far of this process, in MiB, without pages of files, which the kernel can drop.
func watchResident(t *testing.T) func() int64 {
	t.Helper()

	var peak atomic.Int64

	value := regexp.MustCompile(`RssAnon:\s+(\d+) kB`)

	go func() {
		for t.Context().Err() == nil {
			status, _ := os.ReadFile("/proc/self/status")
			if match := value.FindSubmatch(status); match != nil {
				now, _ := strconv.ParseInt(string(match[1]), 10, 64)
				peak.Store(max(peak.Load(), now>>10))
			}

			time.Sleep(5 * time.Millisecond)
		}
	}()

	return peak.Load
}
