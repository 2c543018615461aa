package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommit runs hack/commit.sh in a repository, and in a directory that is none.
func TestCommit(t *testing.T) {
	script, err := os.ReadFile("../commit.sh")
	if err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct {
		given             string
		repository, dirty bool
		want              string // HEAD is the commit of the repository
		fails             bool
	}{
		"clean":                       {repository: true, want: "HEAD"},
		"changed":                     {repository: true, dirty: true, want: "HEAD-dirty"},
		"told":                        {given: "abc", want: "abc"},
		"told, and changed":           {given: "abc-dirty", want: "abc-dirty"},
		"told in a repository":        {given: "abc", repository: true, dirty: true, want: "abc"},
		"not told, and no repository": {fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			run := func(command string, args ...string) (string, error) {
				cmd := exec.CommandContext(t.Context(), command, args...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "COMMIT="+test.given, "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_GLOBAL=/dev/null")
				out, err := cmd.Output()

				return strings.TrimSpace(string(out)), err
			}

			path := filepath.Join(dir, "hack", "commit.sh")
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}

			if err := os.WriteFile(path, script, 0o600); err != nil {
				t.Fatal(err)
			}

			head := ""

			if test.repository {
				for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "x"}} {
					if out, err := run("git", args...); err != nil {
						t.Fatalf("git %s: %v: %s", args[0], err, out)
					}
				}

				head, _ = run("git", "rev-parse", "HEAD")
			}

			if test.dirty {
				if err := os.WriteFile(filepath.Join(dir, "more"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}

			got, err := run("bash", "hack/commit.sh")
			if want := strings.Replace(test.want, "HEAD", head, 1); got != want || (err != nil) != test.fails {
				t.Errorf("%q, %v; want %q, fails %t", got, err, want, test.fails)
			}
		})
	}
}
