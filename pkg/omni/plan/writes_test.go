package plan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// TestWritesGoThroughTheGate checks that every write that can destroy anything in Omni goes through the one gate of
// Apply: no other line of the packages below pkg/omni, the only ones that have a client, writes to Omni, except the
// removal of the owner's mark.
func TestWritesGoThroughTheGate(t *testing.T) {
	verbs := map[string]bool{
		"Create": true, "Update": true, "UpdateWithConflicts": true, "Modify": true, "ModifyWithResult": true,
		"Teardown": true, "Destroy": true, "TeardownAndDestroy": true, "AddFinalizer": true, "RemoveFinalizer": true,
	}
	got := map[string][]string{}

	names, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}

		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}

		ast.Inspect(file, func(node ast.Node) bool {
			call, isCall := node.(*ast.CallExpr)
			if !isCall {
				return true
			}

			if method, ok := call.Fun.(*ast.SelectorExpr); ok && verbs[method.Sel.Name] {
				got[name] = append(got[name], method.Sel.Name)
			}

			return true
		})
	}

	want := map[string][]string{
		"../plan/apply_step.go": {"Create", "Update", "Teardown", "Destroy"},
		"../plan/marks.go":      {"UpdateWithConflicts"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes to Omni (-want +got):\n%s", diff)
	}
}

// TestNothingDestructivePassesWithoutConsent checks that without consent no destructive kind of change is made,
// whatever the plan holds.
func TestNothingDestructivePassesWithoutConsent(t *testing.T) {
	for name, document := range map[string]string{
		"a set goes":             omnitest.ClusterDocument + omnitest.ControlPlaneDocument,
		"a machine goes":         omnitest.ClusterDocument + omnitest.ControlPlaneDocument + "---\nkind: Workers\nname: workers\nmachines:\n- " + omnitest.Machine2 + "\n",
		"listed to class":        omnitest.ClusterDocument + omnitest.ControlPlaneDocument + omnitest.ClassDocument("cpu", "2"),
		"the machine moves":      omnitest.ClusterDocument + "---\nkind: ControlPlane\nmachines:\n- " + omnitest.Machine1 + "\n- " + omnitest.Machine3 + "\n---\nkind: Workers\nname: workers\nmachines:\n- " + omnitest.Machine2 + "\n",
		"the set is renamed":     omnitest.ClusterDocument + omnitest.ControlPlaneDocument + strings.ReplaceAll(omnitest.WorkersDocument, "name: workers", "name: renamed"),
		"the control plane goes": omnitest.ClusterDocument + "---\nkind: ControlPlane\nmachines:\n- 44444444-4444-4444-8444-444444444444\n" + omnitest.WorkersDocument,
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()
			mustSync(t, st, omnitest.FullTemplate)

			noting := &omnitest.RefusingOmni{CoreState: st}
			plan := mustPlan(t, st, document, Options{})

			if len(plan.Destructive()) == 0 {
				t.Fatal("the plan destroys nothing")
			}

			if _, err := Apply(t.Context(), state.WrapCore(noting), plan, ApplyOptions{}); err != nil {
				t.Fatal(err)
			}

			for _, write := range noting.Writes {
				if strings.HasPrefix(write, "teardown") || strings.HasPrefix(write, "destroy") {
					t.Error(write)
				}
			}
		})
	}
}
