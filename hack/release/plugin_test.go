package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// buildKrew builds the package manager, in the version that hack/krew has.
func buildKrew(t *testing.T) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "krew")
	if out, err := exec.CommandContext(t.Context(), "go", "-C", "../krew", "build", "-o", path, "sigs.k8s.io/krew/cmd/krew").CombinedOutput(); err != nil {
		t.Fatalf("build krew: %v\n%s", err, out)
	}

	return path
}

// TestKrewInstalls: krew itself takes the manifest, and installs the archive of this machine.
func TestKrewInstalls(t *testing.T) {
	r := fixture(t, nil)
	dir, root := built(t, r), t.TempDir()
	archive := r.archiveFile(plugin.name, platform{runtime.GOOS, runtime.GOARCH})

	install := exec.CommandContext(t.Context(), buildKrew(t), "install",
		"--manifest="+filepath.Join(dir, krewFile), "--archive="+filepath.Join(dir, archive))
	install.Env = append(os.Environ(), "KREW_ROOT="+root, "KREW_NO_UPGRADE_CHECK=1")

	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	installed, want := filepath.Join(root, "bin", "kubectl-omni"), "kubectl-omni for "+runtime.GOOS+"/"+runtime.GOARCH

	out, err := exec.CommandContext(t.Context(), installed).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("%s says %q %v, want %q", installed, out, err, want)
	}

	if license := contents(t, root, "store", "omni", r.version, "LICENSE"); len(license) == 0 {
		t.Error("the licence is not installed")
	}
}

// TestKrewManifest: every platform has its archive, where the release will be, and its program.
func TestKrewManifest(t *testing.T) {
	r := fixture(t, nil)
	dir := built(t, r)

	var manifest struct {
		Spec struct {
			Version, ShortDescription string
			Platforms                 []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal(contents(t, dir, krewFile), &manifest); err != nil {
		t.Fatal(err)
	}

	// The index of krew asks for less than 50 characters.
	if spec := manifest.Spec; spec.Version != r.version || len(spec.ShortDescription) >= 50 || len(spec.Platforms) != len(pluginPlatforms) {
		t.Fatalf("got %+v", spec)
	}

	sums := string(contents(t, dir, checksumsFile))

	for _, found := range manifest.Spec.Platforms {
		p := platform{found.Selector.MatchLabels["os"], found.Selector.MatchLabels["arch"]}
		archive := r.archiveFile(plugin.name, p)

		if found.URI != "https://downloads.example.com/releases/"+r.version+"/"+archive || !strings.Contains(sums, found.SHA256+"  "+archive+"\n") {
			t.Errorf("%v: %s, %s", p, found.URI, found.SHA256)
		}

		if _, files := unpack(t, contents(t, dir, archive)); len(files) != 2 || files[found.Bin] == "" || strings.HasSuffix(found.Bin, ".exe") != (p.os == "windows") {
			t.Errorf("%v: %s is not in its archive", p, found.Bin)
		}
	}
}
