package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every way to name a decoder is found, with the function that uses it; tests and pkg/foreign itself are not.
func TestFindPlaces(t *testing.T) {
	found, err := findPlaces("testdata/src", "pkg")
	if err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, at := range found {
		got = append(got, at.String())
	}

	want := []string{
		"pkg/a/a.go functions goyaml.NewDecoder",
		"pkg/a/a.go functions json.Unmarshal",
		"pkg/a/a.go functions other.Unmarshal",
		"pkg/a/a.go functions yaml.UnmarshalStrict",
		"pkg/a/a.go package loader.LoadArchive",
		"pkg/a/a.go reader.read io.ReadAll",
		"pkg/a/a.go reader.read json.NewDecoder",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A place that is not in the list is a problem, and so is a line of the list without a place.
func TestCheck(t *testing.T) {
	root := t.TempDir()

	for path, text := range map[string]string{
		allowList:         "# comment\n\npkg/a.go read io.ReadAll # bounded\npkg/a.go gone json.Unmarshal # ours\n",
		"pkg/a.go":        "package pkg\nimport \"io\"\nfunc read() { io.ReadAll(nil) }\nfunc other() { io.ReadAll(nil) }\n",
		"cmd/x/x.go":      "package x\n",
		"pkg/generated/g": "",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	problems, err := check(root)
	if err != nil || len(problems) != 2 || !strings.HasPrefix(problems[0], "pkg/a.go other io.ReadAll: read foreign text with pkg/foreign") ||
		!strings.HasPrefix(problems[1], "pkg/a.go gone json.Unmarshal: there is no such place any more") {
		t.Errorf("%v, %q", err, problems)
	}

	if err := os.WriteFile(filepath.Join(root, allowList), []byte("pkg/a.go read io.ReadAll #\n"), 0o644); err != nil {
		t.Fatal(err)
	}

	if _, err := check(root); err == nil || !strings.Contains(err.Error(), "allowed.txt:1: ") {
		t.Errorf("a line without a reason: %v", err)
	}
}
