package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// name is what the image, the chart and the archives are called.
const name = "omni-cluster-operator"

// chartDir is the chart below the root of the repository. Its version is the release's.
const chartDir = "artifacts/chart/" + name

// release says which release is made, and of which sources.
type release struct {
	root     string    // of the repository
	version  string    // such as v0.1.0
	commit   string    // full hash, with -dirty behind it if there were changes
	time     time.Time // of the commit: the time of every file
	registry string    // host and path, without a slash at the end
	// downloads is the URL below which the files of a release are, in a folder named after its version. No slash at the end.
	downloads string
}

// tagged is the version of a release: what the tag is called.
var tagged = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// describe reads what a release depends on from the chart and the environment.
func describe(root string, getenv func(string) string) (*release, error) {
	content, err := os.ReadFile(filepath.Join(root, chartDir, "Chart.yaml"))
	if err != nil {
		return nil, err
	}

	var chart struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(content, &chart); err != nil {
		return nil, err
	}

	if !tagged.MatchString(chart.AppVersion) || chart.AppVersion != "v"+chart.Version {
		return nil, fmt.Errorf("Chart.yaml has version %q and appVersion %q: they are one version, appVersion with a v", chart.Version, chart.AppVersion)
	}

	r := &release{root: root, version: chart.AppVersion, commit: getenv("COMMIT"), registry: strings.ToLower(strings.Trim(getenv("REGISTRY"), "/"))}

	r.downloads = strings.TrimRight(getenv("DOWNLOADS"), "/")
	if r.commit == "" || r.registry == "" || r.downloads == "" {
		return nil, errors.New("COMMIT, REGISTRY or DOWNLOADS is not set: hack/release.sh sets them")
	}

	seconds, err := strconv.ParseInt(getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}

	r.time = time.Unix(seconds, 0).UTC()

	return r, nil
}

// image is where the image of the release is, without tag and digest.
func (r *release) image() string { return r.registry + "/" + name }

// chart is where the chart of the release is, without tag and digest.
func (r *release) chart() string { return r.registry + "/charts/" + name }

// chartVersion is the version as charts write it.
func (r *release) chartVersion() string { return strings.TrimPrefix(r.version, "v") }

// prerelease reports whether this is something to try, such as v0.2.0-rc.1.
func (r *release) prerelease() bool { return strings.Contains(r.version, "-") }

// check says why this commit cannot become the release of this tag.
func (r *release) check(ctx context.Context, tag string) error {
	var problems []error

	if tag != r.version {
		problems = append(problems, fmt.Errorf("the tag is %q, and Chart.yaml has %s", tag, r.version))
	}

	changelog, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}

	if section(string(changelog), r.version) == "" {
		problems = append(problems, fmt.Errorf("CHANGELOG.md has no section %s", r.version))
	}

	wanted, err := os.ReadFile(filepath.Join(r.root, ".go-version"))
	if err != nil {
		return err
	}

	if version := "go" + strings.TrimSpace(string(wanted)); version != runtime.Version() {
		problems = append(problems, fmt.Errorf("this is %s, .go-version has %s", runtime.Version(), version))
	}

	status := exec.CommandContext(ctx, "git", "status", "--porcelain")
	status.Dir = r.root

	changed, err := status.Output()
	if err != nil {
		return fmt.Errorf("git status: %w", err)
	}

	if changed := bytes.TrimSpace(changed); len(changed) > 0 {
		problems = append(problems, fmt.Errorf("there are changes that are not committed:\n%s", changed))
	}

	return errors.Join(problems...)
}
