package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// nothingToDo are the reasons with which all is well, and those that name what holds the object up.
var nothingToDo = []string{
	"AcceptedByCluster", "Applied", "AssembledTemplate", "Blocked", "ChangesPlanned", "ChartFound", "Connected", "Deleting", "Deployed", "Disabled",
	"DriftCorrected", "DriftFound", "InForce", "Issued", "KeyFound", "MachinesReady", "Newer", "NoDrift", "Running", "SourceFound", "Succeeded",
	"Supported", "TemplateValid", "TestsPassed", "UpToDate", "Written",
}

// TestReasonsOnPages: a page below docs/how-to says what to do about every reason for which there is something to do.
func TestReasonsOnPages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/how-to/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}

	var rows strings.Builder // first cells of tables only: a reason that is named in passing is not explained

	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}

		for line := range strings.Lines(string(text)) {
			if first, _, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|"); ok {
				rows.WriteString(first)
			}
		}
	}

	groups, err := conditionGroups(filepath.Join("../..", conditionsFile))
	if err != nil {
		t.Fatal(err)
	}

	known := map[string]bool{}

	for _, group := range groups {
		if !group.reasons() {
			continue
		}

		for _, reason := range group.constants() {
			known[reason.value] = true

			if !slices.Contains(nothingToDo, reason.value) && !strings.Contains(rows.String(), "`"+reason.value+"`") {
				t.Errorf("no table of a page below docs/how-to has %s: %s", reason.value, reason.meaning)
			}
		}
	}

	for _, reason := range nothingToDo {
		if !known[reason] {
			t.Errorf("there is no reason %s", reason)
		}
	}
}
