package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBuildTags: what is tested and checked is built with the tags of what is released.
func TestBuildTags(t *testing.T) {
	tags := strings.Split("kustomize_disable_go_plugin_support,fieldsv1string", ",")

	for _, name := range []string{
		"Makefile", "Dockerfile", "CONTRIBUTING.md", ".golangci.yaml", "hack/deadcode.sh", "hack/test-omni.sh",
		"hack/release/programs.go", "test/deploy/dockerfile_test.go", "test/env/repository.go",
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}

		first := strings.Count(string(text), tags[0])
		if first == 0 {
			t.Errorf("%s has no build tag %s", name, tags[0])
		}

		for _, tag := range tags[1:] {
			if others := strings.Count(string(text), tag); others < first {
				t.Errorf("%s has %s %d times, but %s %d times", name, tags[0], first, tag, others)
			}
		}
	}
}
