package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// block is a fenced block of a page.
type block struct{ language, text string }

// pageBlocks returns the blocks of a page of the repository that have one of the languages, in their order.
func pageBlocks(t *testing.T, path string, languages ...string) []block {
	t.Helper()

	root, err := env.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}

	page, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}

	var (
		found  []block
		inside bool
	)

	for line := range strings.Lines(string(page)) {
		language, fence := strings.CutPrefix(strings.TrimSpace(line), "```")

		switch {
		case fence && inside:
			inside = false
		case fence:
			inside = true

			found = append(found, block{language: language})
		case inside:
			found[len(found)-1].text += line
		}
	}

	return slices.DeleteFunc(found, func(b block) bool { return !slices.Contains(languages, b.language) })
}

// commandsOf returns the blocks of commands of a page, of which there are so many.
func commandsOf(t *testing.T, page string, want int) []block {
	t.Helper()

	steps := pageBlocks(t, page, "sh")
	if len(steps) != want {
		t.Fatalf("%s has %d blocks of commands, want %d", page, len(steps), want)
	}

	return steps
}

// reader types the commands of a page: in one directory, with kubectl for the namespace of a test.
type reader struct {
	*space

	dir         string
	environment []string
}

// newReader gives a reader the variables that the page asks for.
func (s *space) newReader(variables ...string) *reader {
	s.t.Helper()

	r := &reader{space: s, dir: s.t.TempDir()}

	if err := os.Mkdir(filepath.Join(r.dir, "bin"), 0o700); err != nil {
		s.t.Fatal(err)
	}

	if err := os.Symlink(s.stack().KubectlPath(), filepath.Join(r.dir, "bin", "kubectl")); err != nil {
		s.t.Fatal(err)
	}

	content, err := os.ReadFile(s.stack().KubeconfigPath)
	if err != nil {
		s.t.Fatal(err)
	}

	kubeconfig := filepath.Join(r.dir, "management.kubeconfig")
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		s.t.Fatal(err)
	}

	r.environment = append(s.stack().KubectlEnv(), "KUBECONFIG="+kubeconfig,
		"PATH="+filepath.Join(r.dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	r.environment = append(r.environment, variables...)
	r.types("kubectl config set-context --current --namespace=" + s.name)

	return r
}

// program gives the reader a program: a script that stands for one that cannot run here.
func (r *reader) program(name, script string) {
	r.t.Helper()

	if err := os.WriteFile(filepath.Join(r.dir, "bin", name), []byte("#!/bin/sh\nset -eu\n"+script), 0o700); err != nil {
		r.t.Fatal(err)
	}
}

// types runs commands that have to succeed and returns what they print.
func (r *reader) types(commands string) string {
	r.t.Helper()
	defer r.timed("commands of a page")()

	ctx, cancel := context.WithTimeout(r.t.Context(), eventually)
	defer cancel()

	shell := exec.CommandContext(ctx, "sh", "-e", "-u", "-c", commands)
	shell.Dir, shell.Env = r.dir, r.environment

	out, err := shell.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s\n%v: %s", commands, err, out)
	}

	r.t.Logf("%s\n%s", commands, out)

	return string(out)
}

// wants checks that a text has these parts.
func (r *reader) wants(text string, parts ...string) {
	r.t.Helper()

	for _, part := range parts {
		if !strings.Contains(text, part) {
			r.t.Errorf("there is no %q in:\n%s", part, text)
		}
	}
}
