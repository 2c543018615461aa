package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// cosign signs with the identity of the workflow that runs it: nobody keeps a key. It is built from its module, whose
// content Go's checksum database knows.
const cosign = "github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3"

// bundleFile is the signature of the checksums, with all that is needed to look at it later.
const bundleFile = checksumsFile + ".sigstore.json"

// runner runs a command.
type runner func(ctx context.Context, name string, args ...string) error

// execute is the runner that really does.
func execute(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr

	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, args, err)
	}

	return nil
}

// sign signs what was pushed, by digest, puts the SBOMs beside the images, and signs the checksums of all files.
func (r *release) sign(ctx context.Context, dist string, run runner) error {
	content, err := os.ReadFile(filepath.Join(dist, publishedFile))
	if err != nil {
		return err
	}

	var pushed published
	if err := json.Unmarshal(content, &pushed); err != nil {
		return err
	}

	commands := [][]string{
		{"sign", "--yes", "--recursive", pushed.Image},
		{"sign", "--yes", pushed.Chart},
		{"sign-blob", "--yes", "--bundle", filepath.Join(dist, bundleFile), filepath.Join(dist, checksumsFile)},
	}

	for _, p := range platforms {
		sbom := filepath.Join(dist, r.sbomFile(name, "image_", p))
		commands = append(commands, []string{"attest", "--yes", "--type", "spdxjson", "--predicate", sbom, pushed.Platforms[p.os+"_"+p.arch]})
	}

	for _, command := range commands {
		if err := run(ctx, "go", append([]string{"run", cosign}, command...)...); err != nil {
			return err
		}
	}

	return nil
}

// github makes the release with its notes and files, and shows it to people when everything is there. A release that
// stopped half-way is completed.
func (r *release) github(ctx context.Context, dist string, run runner) error {
	files, err := os.ReadDir(dist)
	if err != nil {
		return err
	}

	assets := map[string]bool{}
	for _, file := range files {
		assets[filepath.Join(dist, file.Name())] = true
	}

	delete(assets, filepath.Join(dist, notesFile))
	delete(assets, filepath.Join(dist, publishedFile))

	notes := []string{"--title", r.version, "--notes-file", filepath.Join(dist, notesFile), fmt.Sprintf("--prerelease=%t", r.prerelease())}

	if run(ctx, "gh", "release", "view", r.version) != nil {
		if err := run(ctx, "gh", append([]string{"release", "create", r.version, "--draft", "--verify-tag"}, notes...)...); err != nil {
			return err
		}
	}

	upload := append([]string{"release", "upload", r.version, "--clobber"}, slices.Sorted(maps.Keys(assets))...)
	if err := run(ctx, "gh", upload...); err != nil {
		return err
	}

	return run(ctx, "gh", append([]string{"release", "edit", r.version, "--draft=false"}, notes...)...)
}
