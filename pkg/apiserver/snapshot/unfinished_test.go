package snapshot

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestRemoveAbandoned: what a killed process left goes, what somebody writes right now stays.
func TestRemoveAbandoned(t *testing.T) {
	dir := t.TempDir()

	for _, name := range []string{".omni-snapshot-unfinished-1", ".hidden", "by-hand.db"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	written, err := createUnfinished(dir)
	if err != nil {
		t.Fatal(err)
	}

	another, err := createUnfinished(dir)
	if err != nil {
		t.Fatal(err)
	}

	left := func() []string {
		t.Helper()

		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}

		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name())
		}

		return names
	}

	want := []string{".hidden", "by-hand.db", filepath.Base(written.Name()), filepath.Base(another.Name())}
	slices.Sort(want)

	if got := left(); !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}

	written.Close() // as the kernel does after a kill
	another.Close()

	if err := removeAbandoned(dir); err != nil {
		t.Fatal(err)
	}

	if got := left(); !slices.Equal(got, []string{".hidden", "by-hand.db"}) {
		t.Errorf("left %q", got)
	}
}
