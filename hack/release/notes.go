package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// section returns what CHANGELOG.md says of a version, without the heading, or "".
func section(changelog, version string) string {
	for _, part := range strings.Split("\n"+changelog, "\n## ")[1:] {
		heading, text, _ := strings.Cut(part, "\n")
		if heading == version || strings.HasPrefix(heading, version+" ") {
			return strings.TrimSpace(text)
		}
	}

	return ""
}

// writeNotes writes the notes of the release: what changed, where things are, and how to look at signatures. Before the
// release, what changed stands under Unreleased.
func (r *release) writeNotes(path, imageDigest string) error {
	changelog, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}

	changes := section(string(changelog), r.version)
	if changes == "" {
		changes = section(string(changelog), "Unreleased")
	}

	return os.WriteFile(path, fmt.Appendf(nil, `%s

## Install

`+"```sh"+`
helm install omni-cluster-operator oci://%s --version %s --namespace omni-cluster-operator-system
`+"```"+`

What to do before is in docs/how-to/install.md. How to verify signatures, provenance and SBOMs is in
docs/development/releases.md. The chart uses this image:

`+"`%s@%s`"+`
`, changes, r.chart(), r.chartVersion(), r.image(), imageDigest), 0o644)
}
