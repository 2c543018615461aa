package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWritesBy(t *testing.T) {
	const log = `{"stage":"ResponseComplete","verb":"patch","requestReceivedTimestamp":"2026-11-21T10:00:00.000000Z","user":{"username":"ctl"},"objectRef":{"resource":"omniclusters","subresource":"status"}}
{"stage":"ResponseComplete","verb":"patch","requestReceivedTimestamp":"2026-11-21T10:00:05.000000Z","user":{"username":"ctl"},"objectRef":{"resource":"omniclusters","subresource":"status"}}
{"stage":"ResponseComplete","verb":"patch","requestReceivedTimestamp":"2026-11-21T10:00:06.000000Z","user":{"username":"ctl"},"objectRef":{"resource":"omniclusters","subresource":"status"}}
{"stage":"ResponseStarted","verb":"create","requestReceivedTimestamp":"2026-11-21T10:00:06.000000Z","user":{"username":"ctl"},"objectRef":{"resource":"events"}}
{"stage":"ResponseComplete","verb":"create","requestReceivedTimestamp":"2026-11-21T10:00:06.000000Z","user":{"username":"ctl"},"objectRef":{"resource":"events"}}
{"stage":"ResponseComplete","verb":"create","requestReceivedTimestamp":"2026-11-21T10:00:06.000000Z","user":{"username":"ctl"},"objectRef":{"resource":"selfsubjectaccessreviews"}}
{"stage":"ResponseComplete","verb":"list","requestReceivedTimestamp":"2026-11-21T10:00:06.000000Z","user":{"username":"ctl"},"objectRef":{"resource":"omniclusters"}}
{"stage":"ResponseComplete","verb":"delete","requestReceivedTimestamp":"2026-11-21T10:00:06.000000Z","user":{"username":"somebody"},"objectRef":{"resource":"omniclusters"}}
{"stage":"Response`

	got, err := writesBy(strings.NewReader(log), "ctl", time.Date(2026, 11, 21, 10, 0, 1, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(map[string]int{"patch omniclusters/status": 2, "create events": 1}, got); diff != "" {
		t.Error(diff)
	}

	if total(got) != 3 {
		t.Error(total(got))
	}
}

func TestWritesByRefusesAnotherFormat(t *testing.T) {
	if _, err := writesBy(strings.NewReader("no json\n"), "ctl", time.Time{}); err == nil {
		t.Error("no error")
	}
}

func TestWritesInFileThatIsMissing(t *testing.T) {
	if _, err := writesInFile(t.TempDir()+"/none", "ctl", time.Time{}); err == nil {
		t.Error("no error")
	}
}

func TestRequestsBy(t *testing.T) {
	const log = `{"stage":"ResponseComplete","verb":"get","requestReceivedTimestamp":"2026-11-21T10:00:00Z","user":{"username":"ctl"},"objectRef":{"resource":"secrets"}}
{"stage":"ResponseComplete","verb":"get","requestReceivedTimestamp":"2026-11-21T10:00:05Z","user":{"username":"ctl"},"objectRef":{"resource":"secrets"}}
{"stage":"ResponseComplete","verb":"get","requestReceivedTimestamp":"2026-11-21T10:00:05Z","user":{"username":"ctl"}}
{"stage":"ResponseStarted","verb":"watch","requestReceivedTimestamp":"2026-11-21T10:00:05Z","user":{"username":"ctl"},"objectRef":{"resource":"configmaps"}}
{"stage":"ResponseComplete","verb":"watch","requestReceivedTimestamp":"2026-11-21T10:00:05Z","user":{"username":"ctl"},"objectRef":{"resource":"configmaps"}}
{"stage":"ResponseComplete","verb":"create","requestReceivedTimestamp":"2026-11-21T10:00:05Z","user":{"username":"ctl"},"objectRef":{"resource":"secrets"}}
{"stage":"ResponseComplete","verb":"create","requestReceivedTimestamp":"2026-11-21T10:00:05Z","user":{"username":"ctl"},"objectRef":{"resource":"selfsubjectaccessreviews"}}
{"stage":"ResponseComplete","verb":"get","requestReceivedTimestamp":"2026-11-21T10:00:05Z","user":{"username":"other"},"objectRef":{"resource":"secrets"}}
`

	path := t.TempDir() + "/log"
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}

	got, err := requestsInFile(path, "ctl", time.Date(2026, 11, 21, 10, 0, 1, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}

	want := map[string]int{
		"get secrets": 1, "get discovery": 1, "watch configmaps": 1, "create secrets": 1, "create selfsubjectaccessreviews": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	if writes := writesOf(got); writes != 1 {
		t.Errorf("%d writes, want 1: a review changes nothing", writes)
	}

	if _, err := requestsInFile(path+"x", "ctl", time.Time{}); err == nil {
		t.Error("no error for a log that is missing")
	}
}
