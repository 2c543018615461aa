package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	root := t.TempDir()

	for name, text := range map[string]string{
		"README.md":            "[a](docs/a.md) [gone](docs/gone.md) [web](https://example.com/x#y)\n```\n[code](nowhere.md)\n```\n",
		"docs/README.md":       "[a](a.md)\n",
		"docs/a.md":            "# A `page`, and more\n## Twice\n## Twice\n[here](#a-page-and-more) [other](b.md#twice-1) [none](#none)\n",
		"docs/b.md":            "## Twice\n## Twice\n[up](a.md#twice-1) [folder](.)\n",
		"docs/testdata/not.md": "[gone](gone.md)",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	got, err := check(root)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{
		"README.md: there is no docs/gone.md",
		"docs/README.md does not list docs/b.md",
		"docs/a.md: docs/a.md has no heading #none",
	}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSlug(t *testing.T) {
	for heading, want := range map[string]string{
		"Whose the target is":                     "whose-the-target-is",
		"The release's namespace":                 "the-releases-namespace",
		"Argo CD: staging and approving":          "argo-cd-staging-and-approving",
		"Condition types of OmniCluster, OmniHub": "condition-types-of-omnicluster-omnihub",
		"`a_b` — c":                               "a_b--c",
	} {
		if got := slug(heading); got != want {
			t.Errorf("%q: %q, want %q", heading, got, want)
		}
	}
}
