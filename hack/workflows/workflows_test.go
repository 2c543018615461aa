package workflows

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const root = "../.."

func read(t *testing.T, path string) []byte {
	t.Helper()

	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}

	return content
}

// makefile returns the targets of the Makefile.
func makefile(t *testing.T) map[string]bool {
	t.Helper()

	found := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^([a-z0-9-]+):.*## `).FindAllSubmatch(read(t, "Makefile"), -1) {
		found[string(match[1])] = true
	}

	return found
}

// all returns the workflows by the names of their files.
func all(t *testing.T) map[string][]byte {
	t.Helper()

	entries, err := os.ReadDir(filepath.Join(root, ".github/workflows"))
	if err != nil {
		t.Fatal(err)
	}

	found := map[string][]byte{}
	for _, entry := range entries {
		found[entry.Name()] = read(t, filepath.Join(".github/workflows", entry.Name()))
	}

	return found
}

func TestWorkflows(t *testing.T) {
	existing := makefile(t)

	for name, content := range all(t) {
		for _, problem := range check(name, content, existing) {
			t.Error(problem)
		}
	}
}

// TestOneVersionOfAnAction: the parts of an action that belong together come from one commit.
func TestOneVersionOfAnAction(t *testing.T) {
	versions := map[string]map[string]bool{}

	for _, content := range all(t) {
		for line := range strings.Lines(string(content)) {
			if match := pinned.FindStringSubmatch(strings.TrimRight(line, "\n")); match != nil {
				repository := strings.Join(strings.Split(match[1], "/")[:2], "/")
				if versions[repository] == nil {
					versions[repository] = map[string]bool{}
				}

				versions[repository][match[2]+" "+match[3]] = true
			}
		}
	}

	for repository, found := range versions {
		if len(found) > 1 {
			t.Errorf("%s is used in several versions: %v", repository, slices.Sorted(maps.Keys(found)))
		}
	}
}

// TestCIRunsWhatASubmissionRuns: what .ci/run asks for is a step of the workflow, too.
func TestCIRunsWhatASubmissionRuns(t *testing.T) {
	var ci workflow
	if err := yaml.Unmarshal(all(t)["ci.yaml"], &ci); err != nil {
		t.Fatal(err)
	}

	done := map[string]bool{}
	for _, j := range ci.Jobs {
		for _, s := range j.Steps {
			done[s.Run] = true
		}
	}

	asked := regexp.MustCompile(`(?m)^make .*$`).FindAllString(string(read(t, ".ci/run")), -1)
	for _, command := range append(asked, "make lint", "make deadcode", "make fuzz", "make vulncheck", "make release-dry-run") {
		if !done[command] {
			t.Errorf("no job of ci.yaml runs %q", command)
		}
	}
}

// TestGoVersion: workflows and image build with the same Go.
func TestGoVersion(t *testing.T) {
	workflows := strings.TrimSpace(string(read(t, ".go-version")))
	if !strings.Contains(string(read(t, "Dockerfile")), " golang:"+workflows+"-") {
		t.Errorf("the workflows use Go %s, the Dockerfile another one", workflows)
	}
}

// TestUpdates: Dependabot looks after the main module, the workflows and the image, and waits a while with each.
func TestUpdates(t *testing.T) {
	var config struct {
		Version int `yaml:"version"`
		Updates []struct {
			Ecosystem string         `yaml:"package-ecosystem"`
			Directory string         `yaml:"directory"`
			Cooldown  map[string]int `yaml:"cooldown"`
		} `yaml:"updates"`
	}

	if err := yaml.Unmarshal(read(t, ".github/dependabot.yml"), &config); err != nil {
		t.Fatal(err)
	}

	var found []string
	for _, update := range config.Updates {
		if found = append(found, update.Ecosystem); update.Directory != "/" || update.Cooldown["default-days"] < 3 {
			t.Errorf("%+v", update)
		}
	}

	if slices.Sort(found); config.Version != 2 || !slices.Equal(found, []string{"docker", "github-actions", "gomod"}) {
		t.Errorf("version %d, %v", config.Version, found)
	}
}
