package workflows

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// workflow is what the rules look at.
type workflow struct {
	On          yaml.Node         `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]job    `yaml:"jobs"`
}

type job struct {
	Uses        string            `yaml:"uses"`
	Permissions map[string]string `yaml:"permissions"`
	Timeout     int               `yaml:"timeout-minutes"`
	Environment string            `yaml:"environment"`
	Steps       []step            `yaml:"steps"`
}

type step struct {
	Uses string            `yaml:"uses"`
	With map[string]string `yaml:"with"`
	Run  string            `yaml:"run"`
	Env  map[string]string `yaml:"env"`
}

// writes are the jobs that may write, and what.
var writes = map[string][]string{
	"codeql.yaml/go":        {"security-events"},
	"codeql.yaml/workflows": {"security-events"},
	"release.yaml/publish":  {"attestations", "contents", "id-token", "packages"},
}

var (
	// An action is named by its commit, with the version behind it, which is what Dependabot reads.
	pinned = regexp.MustCompile(`^\s*(?:- )?uses: ([\w.-]+(?:/[\w.-]+)+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$`)
	uses   = regexp.MustCompile(`^\s*(?:- )?uses:`)
	local  = regexp.MustCompile(`^\s*(?:- )?uses: \./\.github/[\w./-]+$`)
	// A step is targets of our Makefile and nothing else.
	targets = regexp.MustCompile(`^make( [a-z0-9-]+)+$`)
	// Events with which somebody else's change would run with our rights.
	dangerous = regexp.MustCompile(`\b(pull_request_target|workflow_run|issue_comment)\b`)
)

// check returns what is wrong with a workflow of this name, if makefile has the targets.
func check(name string, content []byte, makefile map[string]bool) []string {
	var problems []string

	complain := func(format string, args ...any) {
		problems = append(problems, name+": "+fmt.Sprintf(format, args...))
	}

	var parsed workflow
	if err := yaml.Unmarshal(content, &parsed); err != nil {
		return []string{name + ": " + err.Error()}
	}

	if found := dangerous.Find(content); found != nil {
		complain("begins with %s, which runs foreign changes with our rights", found)
	}

	if parsed.Permissions == nil || len(parsed.Permissions) > 0 {
		complain("does not begin with `permissions: {}`: what a job may do is said at the job")
	}

	for line := range bytes.Lines(content) {
		line = bytes.TrimRight(line, "\n")
		if uses.Match(line) && !local.Match(line) && !pinned.Match(line) {
			complain("an action without commit and version: %s", bytes.TrimSpace(line))
		}
	}

	for _, id := range slices.Sorted(maps.Keys(parsed.Jobs)) {
		current := parsed.Jobs[id]

		for _, problem := range slices.Concat(permissions(name+"/"+id, &current), steps(&current, makefile)) {
			complain("job %s %s", id, problem)
		}
	}

	return problems
}

// permissions looks at what a job may do. id is the name of the file and of the job.
func permissions(id string, j *job) []string {
	var problems []string

	if j.Permissions == nil {
		problems = append(problems, "does not say what it may do")
	}

	for _, scope := range slices.Sorted(maps.Keys(j.Permissions)) {
		if level := j.Permissions[scope]; level != "read" && !slices.Contains(writes[id], scope) {
			problems = append(problems, fmt.Sprintf("may %s %s", level, scope))
		}
	}

	for _, scope := range writes[id] {
		if j.Permissions[scope] != "write" {
			problems = append(problems, fmt.Sprintf("need not write %s any more", scope))
		}
	}

	if j.Uses == "" && j.Timeout == 0 {
		problems = append(problems, "has no timeout")
	}

	return problems
}

// steps looks at what a job does.
func steps(j *job, makefile map[string]bool) []string {
	var problems []string

	for _, s := range j.Steps {
		if s.Run != "" && !targets.MatchString(s.Run) {
			problems = append(problems, fmt.Sprintf("runs more than our targets: %q", s.Run))
		} else if s.Run != "" {
			for target := range strings.FieldsSeq(strings.TrimPrefix(s.Run, "make ")) {
				if !makefile[target] {
					problems = append(problems, fmt.Sprintf("runs make %s, which there is not", target))
				}
			}
		}

		if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != "false" {
			problems = append(problems, "leaves its token in the checkout")
		}

		// What a run for somebody's change has stored would come into the release.
		if strings.HasPrefix(s.Uses, "actions/setup-go@") && (s.With["go-version-file"] != ".go-version" ||
			j.Environment != "" && s.With["cache"] != "false") {
			problems = append(problems, "takes Go from elsewhere than .go-version, or builds a release with a cache")
		}
	}

	return problems
}
