package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/util/jsonpath"
)

// No page approves a plan that nobody has looked at: commands that read the hash and write it in one go approve whatever the
// plan has become since its reader saw it.
func TestNoPageApprovesUnseen(t *testing.T) {
	pages, approving := 0, 0

	err := filepath.WalkDir("../../../docs", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}

		pages++

		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}

		for i, block := range strings.Split(string(text), "```") {
			if i%2 == 0 {
				continue // text between the blocks
			}

			reads := strings.Contains(block, "plan.hash")
			writes := strings.Contains(block, "approvedPlan") && strings.Contains(block, "patch") || strings.Contains(block, "omni approve")

			if reads && writes {
				t.Errorf("%s: a block approves what it reads itself:\n%s", path, block)
			}

			if writes {
				approving++
			}
		}

		return nil
	})
	if err != nil || pages == 0 || approving == 0 {
		t.Errorf("%d pages, %d blocks approve, %v", pages, approving, err)
	}
}

// The page shows the hash with the changes and the diff of one answer: three answers could be of three plans.
func TestApprovePageShowsOnePlan(t *testing.T) {
	text, err := os.ReadFile("../../../docs/how-to/approve.md")
	if err != nil {
		t.Fatal(err)
	}

	shown := false
	plan := map[string]any{"status": map[string]any{"plan": map[string]any{
		"hash": "abc", "diff": "# destroy MachineSet\n", "changes": []any{
			map[string]any{"action": "Destroy", "type": "MachineSets", "id": "c-w", "needsApproval": true},
			map[string]any{"action": "Update", "type": "Clusters", "id": "c"},
		},
	}}}

	for i, block := range strings.Split(string(text), "```") {
		if i%2 == 0 || !strings.Contains(block, "status.plan.") {
			continue
		}

		shown = true

		_, path, _ := strings.Cut(block, "jsonpath='")
		path, _, _ = strings.Cut(path, "'")

		reader := jsonpath.New("page").AllowMissingKeys(true)
		if err := reader.Parse(path); err != nil {
			t.Fatal(err)
		}

		var out strings.Builder
		if err := reader.Execute(&out, plan); err != nil || out.String() != "abc\nDestroy MachineSets c-w\n# destroy MachineSet\n" {
			t.Errorf("the commands show %q, %v", out.String(), err)
		}

		if strings.Count(block, "kubectl get") != 1 || !strings.Contains(block, "plan.hash") || !strings.Contains(block, "plan.changes") || !strings.Contains(block, "plan.diff") {
			t.Errorf("not one answer with everything:\n%s", block)
		}
	}

	if !shown {
		t.Error("the page shows no plan")
	}
}

// A plan that is longer than the status is approved with kubectl, after its reader has found it in the log by its hash.
func TestApproveALongPlan(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	s := newSession(t)
	large := s.cluster("edge-01").DeepCopy()
	large.Status.Plan.OmittedChanges = 12
	s.put("omniclusters", large)

	_, _, err := s.run("approve", "edge-01", "--yes", "--hash", "5d0e")
	if err == nil || len(s.writes()) > 0 {
		t.Fatalf("%v, writes %v", err, s.writes())
	}

	for _, want := range []string{"12 changes more", "-v=2, the line with the hash 5d0e", `kubectl patch omnicluster edge-01 -n fleet --field-manager=by-hand --type=merge -p '{"spec":{"approvedPlan":"5d0e"}}'`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}
