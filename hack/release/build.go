package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// notesFile and checksumsFile have no checksum of their own.
const (
	notesFile     = "notes.md"
	checksumsFile = "checksums.txt"
)

// compiler builds programs for a platform.
type compiler func(context.Context, platform, ...source) ([]program, error)

// build writes the artefacts of a release into a directory, which is emptied before.
func (r *release) build(ctx context.Context, out string, compile compiler) error {
	if err := os.RemoveAll(out); err != nil {
		return err
	}

	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}

	var images []platformImage

	for _, p := range platforms {
		programs, err := compile(ctx, p, servers...)
		if err != nil {
			return err
		}

		if err := r.writeArchive(out, name, p, programs); err != nil {
			return err
		}

		image, err := r.platformImage(p, programs)
		if err != nil {
			return err
		}

		sbom, err := r.imageSBOM(p, programs, image)
		if err != nil {
			return err
		}

		if err := writeSBOM(filepath.Join(out, r.sbomFile(name, "image_", p)), sbom); err != nil {
			return err
		}

		images = append(images, image)
	}

	if err := r.buildPlugin(ctx, out, compile); err != nil {
		return err
	}

	return r.finish(out, images)
}

// finish writes what there is once, not for each platform.
func (r *release) finish(out string, images []platformImage) error {
	layout, err := r.imageLayout(images)
	if err != nil {
		return err
	}

	if err := layout.write(filepath.Join(out, r.imageFile()), r.time); err != nil {
		return err
	}

	if err := r.writeChart(filepath.Join(out, r.chartFile()), layout.top.Digest.String()); err != nil {
		return err
	}

	if err := r.writeNotes(filepath.Join(out, notesFile), layout.top.Digest.String()); err != nil {
		return err
	}

	return writeChecksums(out)
}

// archiveFile is what the programs of a platform are packed in: the servers under the name of the project, the plugin
// under its own.
func (r *release) archiveFile(of string, p platform) string {
	return fmt.Sprintf("%s_%s_%s_%s.tar.gz", of, r.version, p.os, p.arch)
}

// sbomFile is the SPDX document of such an archive, or of an image (with "image_").
func (r *release) sbomFile(of, kind string, p platform) string {
	return fmt.Sprintf("%s_%s_%s%s_%s.spdx.json", of, r.version, kind, p.os, p.arch)
}

func (r *release) imageFile() string { return fmt.Sprintf("%s_%s_image.tar", name, r.version) }

func (r *release) chartFile() string { return fmt.Sprintf("%s-%s.tgz", name, r.chartVersion()) }

// writeArchive packs the programs of a platform, with the licence, and writes the SBOM beside them.
func (r *release) writeArchive(out, of string, p platform, programs []program) error {
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}

	files := []file{{path: "LICENSE", content: license, mode: 0o644}}
	for _, program := range programs {
		files = append(files, file{path: program.name, content: program.content, mode: 0o755})
	}

	packed, err := packGzip(files, r.time)
	if err != nil {
		return err
	}

	if err := os.WriteFile(filepath.Join(out, r.archiveFile(of, p)), packed, 0o644); err != nil {
		return err
	}

	return writeSBOM(filepath.Join(out, r.sbomFile(of, "", p)), r.archiveSBOM(of, p, programs))
}

// writeChecksums writes what `sha256sum --check` reads.
func writeChecksums(out string) error {
	entries, err := os.ReadDir(out)
	if err != nil {
		return err
	}

	var lines []string

	for _, entry := range entries {
		if entry.Name() == notesFile || entry.Name() == checksumsFile {
			continue
		}

		content, err := os.ReadFile(filepath.Join(out, entry.Name()))
		if err != nil {
			return err
		}

		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(content), entry.Name()))
	}

	slices.Sort(lines)

	return os.WriteFile(filepath.Join(out, checksumsFile), []byte(strings.Join(lines, "")), 0o644)
}
