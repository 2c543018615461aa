package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// canary stands for a secret. No diff may show it.
const canary = "s3cr3t-c4n4ry-value"

// secretiveTemplate has a canary in every field that may hold a secret.
const secretiveTemplate = `kind: Cluster
name: demo
labels:
  team: a
kubernetes:
  version: v1.35.0
  manifests:
  - name: addon
    mode: full
    inline:
    - apiVersion: v1
      kind: Secret
      metadata: {name: x, namespace: y}
      stringData: {key: s3cr3t-c4n4ry-value}
talos:
  version: v1.13.2
systemExtensions:
- siderolabs/hello
patches:
- name: registry
  inline:
    machine:
      env:
        TOKEN: s3cr3t-c4n4ry-value
---
kind: ControlPlane
machines:
- 11111111-1111-4111-8111-111111111111
---
kind: Workers
name: workers
machines:
- 22222222-2222-4222-8222-222222222222
---
kind: Machine
name: 22222222-2222-4222-8222-222222222222
kernelArgs:
- token=s3cr3t-c4n4ry-value
`

// everything returns all changes of a plan.
func everything(plan *Plan) []Change { return slices.Concat(plan.Changes, plan.WaitingForOmni) }

func TestDiffOfCreates(t *testing.T) {
	plan := mustPlan(t, omnitest.NewFakeOmni(), secretiveTemplate, Options{})

	const want = `# create Cluster "demo"
@@ -0,0 +1,8 @@
+annotations:
+  omni.sidero.dev/managed-by-cluster-templates: ""
+labels:
+  team: a
+spec:
+  features: {}
+  kubernetesVersion: 1.35.0
+  talosVersion: 1.13.2
`

	got := plan.Diff(everything(plan))
	if !strings.HasPrefix(got, want) {
		t.Errorf("the diff begins with\n%s", got)
	}

	for _, line := range []string{
		"+content: 3 lines, not shown\n", "+content: 7 lines, not shown\n", "+content: 1 argument, not shown\n", "+  - siderolabs/hello\n",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}

	if strings.Contains(got, canary) {
		t.Errorf("a secret is shown:\n%s", got)
	}

	backwards := everything(plan)
	slices.Reverse(backwards)

	if diff := cmp.Diff(got, plan.Diff(backwards)); diff != "" {
		t.Errorf("the order of the changes matters: %s", diff)
	}

	for range 20 {
		again := mustPlan(t, omnitest.NewFakeOmni(), secretiveTemplate, Options{})
		if diff := cmp.Diff(got, again.Diff(everything(again))); diff != "" {
			t.Fatalf("another diff of the same: %s", diff)
		}
	}
}

func TestDiffOfUpdatesAndDestroys(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, secretiveTemplate)

	after := strings.NewReplacer(
		"team: a", "team: b", "v1.35.0", "v1.35.1", "TOKEN: "+canary, "TOKEN: 2-"+canary+"\n        B: "+canary,
		"- token="+canary, "- token=2-"+canary+"\n- quiet", "stringData: {key: "+canary, "stringData: {key: 2-"+canary,
		"---\nkind: Workers\nname: workers\nmachines:\n- "+omnitest.Machine2+"\n---\nkind: Machine\nname: "+omnitest.Machine2, "---\nkind: Machine\nname: "+omnitest.Machine1,
	).Replace(secretiveTemplate)
	plan := mustPlan(t, st, after, Options{})
	got := plan.Diff(everything(plan))

	const first = `# destroy MachineSet "demo-workers" (1 -> none): resets the machines of the set (destructive)
@@ -1,5 +0,0 @@
-labels:
`
	if !strings.HasPrefix(got, first) {
		t.Errorf("the destructive change is not the first:\n%s", got)
	}

	for _, line := range []string{
		"# update Cluster \"demo\"\n", "-  team: a\n", "+  team: b\n", "-  kubernetesVersion: 1.35.0\n", "+  kubernetesVersion: 1.35.1\n",
		"~content changes: 3 lines, then 4 lines, not shown\n", "+content: 2 arguments, not shown\n",
		"# update KernelArgs \"22222222-2222-4222-8222-222222222222\"\n@@ -1,2 +0,0 @@\n-annotations:\n",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}

	if strings.Contains(got, canary) {
		t.Errorf("a secret is shown:\n%s", got)
	}
}

// TestDiffHidesWhatSomebodyMadeInOmni checks that content in Omni is hidden like content of the template.
func TestDiffHidesWhatSomebodyMadeInOmni(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, omnitest.FullTemplate)

	patch := omnitest.Labelled(omnires.NewConfigPatch("500-by-hand"), "demo")
	patch.Metadata().Annotations().Set("name", "by\x1b[31mhand\n"+strings.Repeat("x", 1000))

	if err := patch.TypedSpec().Value.SetUncompressedData([]byte("machine:\n  token: " + canary + "\n")); err != nil {
		t.Fatal(err)
	}

	omnitest.MustCreate(t, st, patch)

	plan := mustPlan(t, st, omnitest.FullTemplate, Options{})
	got := plan.Diff(everything(plan))

	if !strings.HasPrefix(got, "# destroy ConfigPatch \"500-by-hand\"\n") || !strings.HasSuffix(got, "-content: 2 lines, not shown\n") {
		t.Errorf("got\n%s", got)
	}

	if strings.Contains(got, canary) || strings.Contains(got, "\x1b") {
		t.Errorf("got\n%q", got)
	}

	for line := range strings.Lines(got) {
		if len(line) > maxDiffLine+1 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

func TestDiffOfWhatWaits(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, omnitest.FullTemplate)
	omnitest.TearDown(t, st, omnitest.SetNamed("demo", "workers"))

	plan := mustPlan(t, st, omnitest.FullTemplate, Options{})

	const want = `# update MachineSet "demo-workers": it is being torn down and has to be gone first`

	got := plan.Diff(everything(plan))
	if !strings.Contains(got, want+"\n") || !strings.Contains(got, "; Omni is tearing it down\n") {
		t.Errorf("got\n%s", got)
	}

	if left := plan.Diff(nil); left != "" {
		t.Errorf("nothing is left, and the diff says %q", left)
	}
}

func TestBoundedDiff(t *testing.T) {
	short := "# create Cluster \"demo\"\n+a: b\n"
	if got := BoundedDiff(short); got != short {
		t.Errorf("got %q", got)
	}

	var long strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&long, "+line %04d of a long text\n", i)
	}

	got := BoundedDiff(long.String())
	if len(got) > maxDiffBytes || len(got) < maxDiffBytes-200 {
		t.Errorf("%d bytes", len(got))
	}

	const want = "+line 0309 of a long text\n... 690 more lines (17940 bytes) are left out; the controller logs all of it at verbosity 2\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("it ends in %q", got[len(got)-200:])
	}

	if got := BoundedDiff(strings.Repeat("x", maxDiffBytes+1)); len(got) > maxDiffBytes {
		t.Errorf("%d bytes of one line", len(got))
	}
}
