package omni

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
)

// Everything that can destroy anything in Omni goes through the one gate of
// ApplyPlan: no other line of the packages below pkg/omni, the only ones that
// have a client, writes to Omni but the removal of the owner's mark.
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
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "../omnitest/") {
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
		"../plan/plan_marks.go": {"UpdateWithConflicts"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes to Omni (-want +got):\n%s", diff)
	}
}

// Without leave no destructive kind of change passes, whatever the plan holds.
func TestNothingDestructivePassesWithoutLeave(t *testing.T) {
	for name, document := range map[string]string{
		"a set goes":             clusterDocument + controlPlaneDocument,
		"a machine goes":         clusterDocument + controlPlaneDocument + "---\nkind: Workers\nname: workers\nmachines:\n- " + machine2 + "\n",
		"listed to class":        clusterDocument + controlPlaneDocument + classDocument("cpu", "2"),
		"the machine moves":      clusterDocument + "---\nkind: ControlPlane\nmachines:\n- " + machine1 + "\n- " + machine3 + "\n---\nkind: Workers\nname: workers\nmachines:\n- " + machine2 + "\n",
		"the set is renamed":     clusterDocument + controlPlaneDocument + strings.ReplaceAll(workersDocument, "name: workers", "name: renamed"),
		"the control plane goes": clusterDocument + "---\nkind: ControlPlane\nmachines:\n- 44444444-4444-4444-8444-444444444444\n" + workersDocument,
	} {
		t.Run(name, func(t *testing.T) {
			st := newFakeOmni()
			mustSync(t, st, fullTemplate)

			noting := &refusingOmni{CoreState: st}
			plan := mustPlan(t, st, document, PlanOptions{})

			if len(plan.Destructive()) == 0 {
				t.Fatal("the plan destroys nothing")
			}

			if _, err := ApplyPlan(t.Context(), state.WrapCore(noting), plan, ApplyOptions{}); err != nil {
				t.Fatal(err)
			}

			for _, write := range noting.writes {
				if strings.HasPrefix(write, "teardown") || strings.HasPrefix(write, "destroy") {
					t.Error(write)
				}
			}
		})
	}
}
