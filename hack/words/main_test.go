package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	for name, want := range map[string]string{
		"":                 "",
		"door":             "door",
		"openDoor":         "open door",
		"HTTPDoor":         "http door",
		"doorHTTP":         "door http",
		"labelled":         "labelled",
		"back-door_2":      "back door 2",
		"kubeconfigOfUser": "kubeconfig of user",
	} {
		if got := strings.Join(split(name), " "); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		list:                      "# word instead\n\ndoor Access\nbell Trigger\n",
		"cmd/main.go":             "package main\n\n// A door.\nfunc main() { print(\"door\") }\n",
		"pkg/access/door.go":      "package access\n\ntype Access struct{ backDoor int }\n\nfunc f(bell bool) { doors := 1; for range doors {} }\n",
		"pkg/generated/bell.go":   "package generated\n",
		"pkg/access/bell_test.go": "package access\n\nfunc TestBellRings() {}\n\nfunc ring() { for bell := range 2 { _ = bell } }\n",
		"test/bell/doc.txt":       "bell",
		"docs/bell.md":            "door",
		"artifacts/a.yaml":        "bell",
		"hack/ring.sh":            "bell",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
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

	want := []string{
		`docs/bell.md: bell: "bell" is not a word of this project, use Trigger`,
		`pkg/access/bell_test.go: bell_test: "bell" is not a word of this project, use Trigger`,
		`pkg/access/bell_test.go:5: bell: "bell" is not a word of this project, use Trigger`,
		`pkg/access/door.go: door: "door" is not a word of this project, use Access`,
		`pkg/access/door.go:3: backDoor: "door" is not a word of this project, use Access`,
		`pkg/access/door.go:5: bell: "bell" is not a word of this project, use Trigger`,
		`test/bell: bell: "bell" is not a word of this project, use Trigger`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
