package deploy

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestBuildTags: what is released, what is tested and what is linted is built with the Makefile's tags.
func TestBuildTags(t *testing.T) {
	text := func(path string) string { return read(t, filepath.Join(root, path)) }

	found := regexp.MustCompile(`(?m)^export GOFLAGS .* -tags=(\S+)$`).FindStringSubmatch(text("Makefile"))
	if found == nil {
		t.Fatal("the Makefile sets no build tags")
	}

	for _, path := range []string{
		"Dockerfile", "hack/release/programs.go", "hack/deadcode.sh", "hack/test-omni.sh", "CONTRIBUTING.md", "test/deploy/dockerfile_test.go",
	} {
		if !strings.Contains(text(path), found[1]) {
			t.Errorf("%s does not have the build tags %s", path, found[1])
		}
	}

	for tag := range strings.SplitSeq(found[1], ",") {
		if !strings.Contains(text(".golangci.yaml"), "- "+tag+"\n") {
			t.Errorf(".golangci.yaml does not have the build tag %s", tag)
		}

		if !strings.Contains(text("test/env/repository.go"), `"`+tag+`"`) {
			t.Errorf("test/env does not have the build tag %s", tag)
		}
	}
}
