package main

import (
	"strings"
	"testing"
)

// Every kind is read whole from its descriptor, although that has another type for each.
func TestKinds(t *testing.T) {
	all := kinds()
	if len(all) != 9 {
		t.Fatalf("%d kinds", len(all))
	}

	for _, k := range all {
		if k.Kind == "" || k.Plural == "" || k.ShortName == "" || len(k.columns) < 3 || k.columns[0].Name == "" || k.columns[0].Description == "" {
			t.Errorf("%+v", k)
		}

		scalable := k.Kind == "OmniWorkers" || k.Kind == "OmniControlPlane"
		if k.scale != scalable {
			t.Errorf("%s: scale %v", k.Kind, k.scale)
		}
	}
}

// A page has everything of its kind: the example, the fields, and the condition types that name it.
func TestKindPages(t *testing.T) {
	pages, err := kindPages("../..")
	if err != nil {
		t.Fatal(err)
	}

	for page, wants := range map[string][]string{
		"omniworkers.md":     {"# OmniWorkers\n", "| Short name | `ow` |", "`scale`", "## Example", "`spec.machineClass.size`*", "`status.readyReplicas`", "| `Accepted` |", "| `Synced` |"},
		"omnicluster.md":     {"`template`", "--field-selector spec.connectionRef.name=NAME", "Plan (`-o wide`)", "| `Planned` |", "| `DeletionBlocked` |"},
		"omnihelmrelease.md": {"| `Drifted` |", "| `Suspended` |"},
		"fields.md":          {"[OmniMachine](omnimachine.md)"},
	} {
		for _, want := range wants {
			if !strings.Contains(pages[page], want) {
				t.Errorf("%s has no %q", page, want)
			}
		}
	}

	if strings.Contains(pages["omnimachine.md"], "| `Planned` |") {
		t.Error("OmniMachine has a condition type of OmniCluster")
	}
}

func TestOneLine(t *testing.T) {
	got := oneLine("mode is a|b.\n\nPossible enum values:\n - `\"a\"` is one.\n - `\"b\"` is two.")
	if want := "mode is a\\|b. `\"a\"` is one. `\"b\"` is two."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
