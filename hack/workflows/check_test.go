package workflows

import (
	"strings"
	"testing"
)

// good is a workflow with which nothing is wrong.
const good = `
on: [push]
permissions: {}
jobs:
  test:
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    permissions:
      contents: read
    steps:
      - uses: actions/checkout@0123456789abcdef0123456789abcdef01234567 # v1.2.3
        with:
          persist-credentials: false
      - uses: actions/setup-go@0123456789abcdef0123456789abcdef01234567 # v1.2.3
        with:
          go-version-file: .go-version
      - run: make test
`

// TestCheck: each rule finds a workflow that breaks it.
func TestCheck(t *testing.T) {
	for _, tc := range []struct{ name, old, new, want string }{
		{name: "good"},
		{"tag", "checkout@0123456789abcdef0123456789abcdef01234567 # v1.2.3", "checkout@v4", "without commit and version"},
		{"commit without version", " # v1.2.3", "", "without commit and version"},
		{"version that is none", " # v1.2.3", " # v1", "without commit and version"},
		{"permissions of the workflow", "permissions: {}", "permissions:\n  contents: read", "does not begin with"},
		{"no permissions of the workflow", "permissions: {}", "", "does not begin with"},
		{"everything", "permissions: {}", "permissions: write-all", "cannot unmarshal"},
		{"no permissions of the job", "    permissions:\n      contents: read\n", "", "does not say what it may do"},
		{"write", "contents: read", "contents: write", "may write contents"},
		{"no timeout", "    timeout-minutes: 5\n", "", "has no timeout"},
		{"script", "run: make test", "run: go test ./...", "runs more than our targets"},
		{"two commands", "run: make test", "run: make test; make verify", "runs more than our targets"},
		{"expression", "run: make test", "run: make ${{ github.ref_name }}", "runs more than our targets"},
		{"no such target", "run: make test", "run: make nothing", "make nothing, which there is not"},
		{"token", "persist-credentials: false", "fetch-depth: 0", "leaves its token"},
		{"another Go", "go-version-file: .go-version", "go-version: stable", "elsewhere than .go-version"},
		{"release with a cache", "    permissions:\n      contents", "    environment: release\n    permissions:\n      contents", "builds a release with a cache"},
		{"foreign changes", "on: [push]", "on: [pull_request_target]", "runs foreign changes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			content := strings.Replace(good, tc.old, tc.new, 1)
			if tc.want != "" && content == good {
				t.Fatal("the row changes nothing")
			}

			problems := strings.Join(check("some.yaml", []byte(content), map[string]bool{"test": true}), "\n")
			if (tc.want == "") != (problems == "") || !strings.Contains(problems, tc.want) {
				t.Errorf("got %q, want %q", problems, tc.want)
			}
		})
	}
}

// TestCheckOfWrites: a job that may write does so for as long as it needs to.
func TestCheckOfWrites(t *testing.T) {
	content := strings.Replace(good, "  test:\n", "  go:\n", 1)

	problems := check("codeql.yaml", []byte(content), map[string]bool{"test": true})
	if len(problems) != 1 || !strings.Contains(problems[0], "need not write security-events any more") {
		t.Errorf("got %q", problems)
	}
}
