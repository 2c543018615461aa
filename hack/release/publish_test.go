package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// TestPush pushes a release to a registry that wants a password, twice, and reads it as our users do: the chart with the
// operator's own client, the image by its digest.
func TestPush(t *testing.T) {
	registry := chartserver.StartRegistry()
	t.Cleanup(registry.Close)
	registry.Protect("someone", "secret")

	r := fixture(t, map[string]string{"REGISTRY": strings.TrimPrefix(registry.URL("team"), "oci://")})
	dist := built(t, r)

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(registry.CA())

	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)

	outputs := filepath.Join(t.TempDir(), "outputs")
	t.Setenv("GITHUB_OUTPUT", outputs)

	if err := r.push(t.Context(), dist, client("someone", "wrong", transport)); err == nil {
		t.Error("a wrong password is good enough")
	}

	authorized := client("someone", "secret", transport)
	for range 2 {
		if err := r.push(t.Context(), dist, authorized); err != nil {
			t.Fatal(err)
		}
	}

	checkPushed(t, r, dist, outputs)

	repository, err := remote.NewRepository(r.image())
	if err != nil {
		t.Fatal(err)
	}

	repository.Client = authorized
	digest := pushedIndex(t, r, dist).Digest

	if got, err := oras.Copy(t.Context(), repository, digest.String(), memory.New(), "", oras.DefaultCopyOptions); err != nil || got.Digest != digest {
		t.Errorf("pull the image: %v, %v", got.Digest, err)
	}

	fetchChart(t, charts.Source{
		Chart: "oci://" + r.chart(), CA: registry.CA(), Version: r.chartVersion(), Credentials: charts.Credentials{Username: "someone", Password: "secret"},
	}, fmt.Sprintf("sha256:%x", sha256.Sum256(contents(t, dist, r.chartFile()))))
}

// checkPushed compares what was written down with what was built.
func checkPushed(t *testing.T, r *release, dist, outputs string) {
	t.Helper()

	var pushed published
	if err := json.Unmarshal(contents(t, dist, publishedFile), &pushed); err != nil {
		t.Fatal(err)
	}

	index := pushedIndex(t, r, dist)
	if pushed.Image != r.image()+"@"+index.Digest.String() || len(pushed.Platforms) != 2 || pushed.Platforms["linux_arm64"] == "" {
		t.Errorf("%+v", pushed)
	}

	_, chartDigest, _ := strings.Cut(pushed.Chart, "@")
	for _, line := range []string{"image-name=" + r.image(), "image-digest=" + index.Digest.String(), "chart-name=" + r.chart(), "chart-digest=" + chartDigest} {
		if !strings.Contains(string(contents(t, outputs)), line+"\n") {
			t.Errorf("the outputs have no %s", line)
		}
	}
}

// fetchChart fetches a chart as OmniHelmReleases do.
func fetchChart(t *testing.T, source charts.Source, want string) {
	t.Helper()

	fetcher := charts.New(charts.Options{Guard: dialguard.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})

	resolved, err := fetcher.Resolve(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}

	archive, err := fetcher.Open(t.Context(), source, resolved)
	if err != nil {
		t.Fatal(err)
	}

	if got := archive.Resolved(); got.ArchiveDigest != want || got.Name != name {
		t.Errorf("got %+v, want %s", got, want)
	}
}

// recorder keeps the commands it is given, and lets those fail that begin like failing.
func recorder(failing string) (runner, *[]string) {
	var commands []string

	return func(_ context.Context, name string, args ...string) error {
		command := strings.Join(append([]string{name}, args...), " ")
		if commands = append(commands, command); failing != "" && strings.HasPrefix(command, failing) {
			return errors.New("it failed")
		}

		return nil
	}, &commands
}

func TestSign(t *testing.T) {
	dist := t.TempDir()
	pushed := published{Image: "r/image@sha256:1", Chart: "r/chart@sha256:2", Platforms: map[string]string{"linux_amd64": "r/image@sha256:3", "linux_arm64": "r/image@sha256:4"}}

	if err := pushed.write(dist, ""); err != nil {
		t.Fatal(err)
	}

	r := fixture(t, nil)
	run, commands := recorder("")

	if err := r.sign(t.Context(), dist, run); err != nil {
		t.Fatal(err)
	}

	for i, want := range []string{
		"sign --yes --recursive r/image@sha256:1", "sign --yes r/chart@sha256:2", "sign-blob --yes --bundle " + dist + "/checksums.txt.sigstore.json " + dist + "/checksums.txt",
		"attest --yes --type spdxjson --predicate " + dist + "/" + r.sbomFile(name, "image_", platforms[0]) + " r/image@sha256:3",
		"attest --yes --type spdxjson --predicate " + dist + "/" + r.sbomFile(name, "image_", platforms[1]) + " r/image@sha256:4",
	} {
		if got := (*commands)[i]; got != "go run "+cosign+" "+want {
			t.Errorf("got %s, want %s", got, want)
		}
	}

	if run, commands = recorder("go run"); r.sign(t.Context(), dist, run) == nil || len(*commands) != 1 {
		t.Errorf("goes on after a failure: %v", *commands)
	}
}

// TestGitHub: a release is a draft until all of its files are there, and one that stopped before is completed.
func TestGitHub(t *testing.T) {
	r := fixture(t, nil)
	dist := built(t, r)
	write(t, filepath.Join(dist, bundleFile), "{}")
	write(t, filepath.Join(dist, publishedFile), "{}")

	for _, tc := range []struct {
		failing string
		want    []string
	}{
		{"gh release view", []string{"view", "create", "upload", "edit"}},
		{"", []string{"view", "upload", "edit"}},
		{"gh release upload", []string{"view", "upload"}},
	} {
		run, commands := recorder(tc.failing)
		if err := r.github(t.Context(), dist, run); (err != nil) != (tc.failing == "gh release upload") {
			t.Errorf("%s: %v", tc.failing, err)
		}

		var verbs []string

		for _, command := range *commands {
			verb := strings.Fields(command)[2]
			verbs = append(verbs, verb)

			if verb == "create" && !strings.Contains(command, "--draft --verify-tag") || verb == "edit" && !strings.Contains(command, "--draft=false") {
				t.Error(command)
			}

			files := strings.Count(command, dist)
			if verb == "upload" && (files != 21 || strings.Contains(command, notesFile) || strings.Contains(command, publishedFile)) {
				t.Errorf("%d files: %s", files, command)
			}
		}

		if !slices.Equal(verbs, tc.want) {
			t.Errorf("got %v, want %v", verbs, tc.want)
		}
	}
}
