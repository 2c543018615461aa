package deploy

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// instructions reads a Dockerfile: one entry for each instruction, continued lines joined, without comments.
func instructions(t *testing.T) []string {
	t.Helper()

	var result []string

	continued := false

	for _, line := range strings.Split(read(t, filepath.Join(root, "Dockerfile")), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}

		text, more := strings.CutSuffix(line, `\`)
		if text = strings.TrimSpace(text); continued {
			result[len(result)-1] += " " + text
		} else {
			result = append(result, text)
		}

		continued = more
	}

	return result
}

// TestDockerfile holds the build to its promises, as far as they can be read: nothing here can build an image.
func TestDockerfile(t *testing.T) {
	all := instructions(t)
	last := len(all) - 1 - slices.IndexFunc(reversed(all), func(line string) bool { return strings.HasPrefix(line, "FROM ") })

	if all[last] != "FROM scratch" {
		t.Errorf("the image is made %s", all[last])
	}

	final := strings.Join(all[last:], "\n")
	for _, want := range []string{
		"/etc/ssl/certs/ca-certificates.crt", "/out/omni-apiserver /out/omni-controller /", "USER 65532:65532",
	} {
		if !strings.Contains(final, want) {
			t.Errorf("the last stage has no %q", want)
		}
	}

	if !strings.Contains(strings.Join(all[:last], "\n"), "ENV CGO_ENABLED=0 ") {
		t.Error("the programs are built with cgo, and need libraries that the image does not have")
	}

	if strings.Contains(final, "RUN ") || strings.Contains(final, "ENTRYPOINT") {
		t.Errorf("there is no shell in the last stage, and the chart names the program:\n%s", final)
	}

	for _, line := range all {
		if image, ok := strings.CutPrefix(line, "FROM "); ok && strings.Contains(image, "latest") {
			t.Errorf("an image without a version: %s", line)
		}
	}
}

// TestGoVersions: the image is built with the minor version of Go that go.mod asks for, and not with an older patch.
func TestGoVersions(t *testing.T) {
	asked := regexp.MustCompile(`(?m)^go (\d+\.\d+)\.(\d+)$`).FindStringSubmatch(read(t, filepath.Join(root, "go.mod")))
	used := regexp.MustCompile(`golang:(\d+\.\d+)\.(\d+)-\S+ AS build`).FindStringSubmatch(strings.Join(instructions(t), "\n"))

	if asked == nil || used == nil {
		t.Fatalf("go.mod asks for %v, the Dockerfile uses %v", asked, used)
	}

	if asked[1] != used[1] || len(used[2]) < len(asked[2]) || len(used[2]) == len(asked[2]) && used[2] < asked[2] {
		t.Errorf("go.mod asks for %s.%s, the Dockerfile uses %s.%s", asked[1], asked[2], used[1], used[2])
	}
}

// TestDockerBuildSteps tries what the build step of the Dockerfile needs on a copy of what it copies, so that a file that
// is missing there shows: the script makes the version flags, and all packages are found. Nothing is compiled.
func TestDockerBuildSteps(t *testing.T) {
	dir := t.TempDir()

	for _, line := range instructions(t) {
		fields := strings.Fields(line)
		if fields[0] != "COPY" || strings.HasPrefix(fields[1], "--from") {
			continue
		}

		target := fields[len(fields)-1]
		for _, source := range fields[1 : len(fields)-1] {
			to := filepath.Join(dir, target)
			if strings.HasSuffix(target, "/") {
				to = filepath.Join(to, source)
			}

			copyTree(t, filepath.Join(root, source), to)
		}
	}

	for _, step := range []struct {
		command, want string
	}{
		{"VERSION=v1.2.3 COMMIT=abc hack/ldflags.sh",
			"-X omni.texashpc.com/omni-cluster-operator/pkg/version.release=v1.2.3 -X omni.texashpc.com/omni-cluster-operator/pkg/version.commit=abc\n"},
		{"go list -deps -f '{{if .Error}}{{.Error}}{{end}}' ./cmd/apiserver ./cmd/controller | sort -u", "\n"},
	} {
		var stderr bytes.Buffer

		command := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", step.command)
		command.Dir, command.Stderr = dir, &stderr
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-tags=kustomize_disable_go_plugin_support,fieldsv1string")

		output, err := command.Output()
		if err != nil || strings.TrimSpace(string(output)) != strings.TrimSpace(step.want) {
			t.Errorf("%s: %v, %q, want %q: %s", step.command, err, output, step.want, stderr.String())
		}
	}
}

// TestProgramsAreStatic: the programs, which the tests build as the image does, need no libraries: the image has none.
func TestProgramsAreStatic(t *testing.T) {
	binaries, err := env.BuildBinaries(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}

	for _, path := range []string{binaries.OmniAPIServer, binaries.OmniController} {
		program, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer program.Close()

		for _, segment := range program.Progs {
			if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
				t.Errorf("%s is linked dynamically", path)
			}
		}
	}
}

// copyTree copies a file, or a directory as it goes into the image: without tests.
func copyTree(t *testing.T, from, to string) {
	t.Helper()

	err := filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}

		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}

		info, err := entry.Info()
		if err != nil {
			return err
		}

		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}

		target := filepath.Join(to, relative)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}

		return os.WriteFile(target, content, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
}

func reversed(lines []string) []string {
	lines = slices.Clone(lines)
	slices.Reverse(lines)

	return lines
}
