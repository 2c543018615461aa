package template

import (
	"strings"
	"testing"
)

func TestIsUnknownKind(t *testing.T) {
	for name, tc := range map[string]struct {
		apiVersion, kind string
		want             bool
	}{
		"of this library":          {"v1alpha1", "SysctlConfig", false},
		"of a later Talos":         {"v1alpha1", "NoSuchConfig", true},
		"a later version of one":   {"v1beta1", "SysctlConfig", true},
		"a version with a group":   {"talos.dev/v1", "NoSuchConfig", true},
		"YAML takes it for a bool": {"v1alpha1", "Yes", true},
		"no kind":                  {"v1alpha1", "", false},
		"no version":               {"", "NoSuchConfig", false},
		"not as kinds are written": {"v1alpha1", "noSuchConfig", false},
		"a sentence":               {"v1alpha1", "My Secret", false},
		"a quote and a line break": {"v1alpha1", "A\"\nmachine: {}", false},
		"too long":                 {"v1alpha1", strings.Repeat("K", 64), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsUnknownKind(tc.apiVersion, tc.kind); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

const (
	unknownDocument = "apiVersion: v1alpha1\nkind: NoSuchConfig\nrule: &a {b: c}\nother: *a\n"
	knownDocument   = "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n"
)

func TestCheckablePatch(t *testing.T) {
	for name, tc := range map[string]struct {
		patch, want string
		less        bool
	}{
		"a fragment":                {"machine: {sysctls: {a: b}} # why\n", "machine: {sysctls: {a: b}} # why\n", false},
		"a known document":          {knownDocument, knownDocument, false},
		"an unknown document":       {unknownDocument, nothingToCheck, true},
		"the unknown one first":     {unknownDocument + "---\n" + knownDocument, knownDocument, true},
		"the unknown one last":      {knownDocument + "--- # next\n" + unknownDocument, knownDocument, true},
		"on the line of the dashes": {"--- {apiVersion: v1alpha1, kind: NoSuchConfig}\n---\n" + knownDocument, knownDocument, true},
		"deletes a document":        {"apiVersion: v1alpha1\nkind: NoSuchConfig\n$patch: delete\n", nothingToCheck, true},
		"not YAML":                  {unknownDocument + "---\na: [", unknownDocument + "---\na: [", false},
		"no mapping":                {"- kind: NoSuchConfig\n", "- kind: NoSuchConfig\n", false},
		"empty":                     {"", "", false},
		"a comment":                 {"# nothing\n", "# nothing\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, less := CheckablePatch([]byte(tc.patch))
			if string(got) != tc.want || less != tc.less {
				t.Errorf("got %v %q", less, got)
			}
		})
	}
}

// Only the patches change: what is wrong elsewhere is found as before.
func TestCheckable(t *testing.T) {
	const document = "kind: Cluster\nname: NoSuchConfig\npatches:\n- name: a\n  inline: |\n    machine: {}\n- name: b\n  inline: |\n    apiVersion: v1alpha1\n    kind: NoSuchConfig\n- name: c\n"

	got, less := Checkable([]byte(document))
	if want := strings.Replace(document, "apiVersion: v1alpha1\n    kind: NoSuchConfig", "machine: {}", 1); !less || squeeze(string(got)) != squeeze(want) {
		t.Errorf("got %v\n%s", less, got)
	}

	if got, less := Checkable([]byte("kind: Cluster\npatches: 7\n")); less || string(got) != "kind: Cluster\npatches: 7\n" {
		t.Errorf("got %v %q", less, got)
	}
}

func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }
