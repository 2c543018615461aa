package snapshot

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTakenAt(t *testing.T) {
	taken := time.Date(2026, 11, 21, 14, 30, 5, 0, time.UTC)

	if got, ok := takenAt(nameAt(taken)); !ok || !got.Equal(taken) {
		t.Errorf("%s: %s, %t", nameAt(taken), got, ok)
	}

	for _, name := range []string{
		"", "omni-.db", "omni-20261121T143005Z", "20261121T143005Z.db", "omni-20261121T143005Z.db.old",
		"omni-20261121T143005.5Z.db", "omni-20261321T143005Z.db", "my-omni-20261121T143005Z.db", "before-upgrade.db",
	} {
		if _, ok := takenAt(name); ok {
			t.Errorf("%s is taken for a scheduled snapshot", name)
		}
	}
}

func TestSurplus(t *testing.T) {
	files := []Scheduled{{Path: "1"}, {Path: "2"}, {Path: "3"}, {Path: "4"}}

	tests := []struct {
		name  string
		limit int
		keep  string
		want  []string
	}{
		{"fewer than the limit", 5, "4", nil},
		{"as many as the limit", 4, "4", nil},
		{"one too many", 3, "4", []string{"1"}},
		{"only the newest", 1, "4", []string{"1", "2", "3"}},
		{"the clock was set back", 2, "1", []string{"2", "3"}},
		{"only the newest, the clock was set back", 1, "1", []string{"2", "3", "4"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, surplus(files, test.limit, test.keep)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInDirectory(t *testing.T) {
	dir := t.TempDir()

	for _, name := range []string{"omni-20261121T143005Z.db", "omni-20261120T143005Z.db", "by-hand.db", ".omni-snapshot-unfinished-1"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	if err := os.Mkdir(filepath.Join(dir, "omni-20261119T143005Z.db"), 0o700); err != nil {
		t.Fatal(err)
	}

	got, err := InDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}

	want := []Scheduled{
		{Path: filepath.Join(dir, "omni-20261120T143005Z.db"), Taken: time.Date(2026, 11, 20, 14, 30, 5, 0, time.UTC), Size: 24},
		{Path: filepath.Join(dir, "omni-20261121T143005Z.db"), Taken: time.Date(2026, 11, 21, 14, 30, 5, 0, time.UTC), Size: 24},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	if got, err := InDirectory(filepath.Join(dir, "none")); err != nil || got != nil {
		t.Errorf("no directory: %v, %v", got, err)
	}
}

func TestObjectOf(t *testing.T) {
	for key, want := range map[string]object{
		"/omni-apiserver/omni.texashpc.com/omniclusters/default/one": {"/omni-apiserver", "omniclusters"},
		"/my/other/omni.texashpc.com/omnimachines/default/one":       {"/my/other", "omnimachines"},
		"/omni-apiserver/omni.texashpc.com/omniclusters":             {},
		"/registry/pods/default/one":                                 {},
		"compact_rev_key":                                            {},
	} {
		if got, ours := objectOf([]byte(key)); ours != (want != object{}) || ours && got != want {
			t.Errorf("%s: %q, %t", key, got, ours)
		}
	}
}
