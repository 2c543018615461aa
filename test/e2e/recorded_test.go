package e2e

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// record writes what the commands print into the page.
var record = flag.Bool("record", false, "write the recorded outputs into docs/concepts/status.md")

// recordedPage has blocks of language recordedBlock: a command after a $, and what it prints.
const (
	recordedPage  = "docs/concepts/status.md"
	recordedBlock = "console recorded"
)

// unrepeatable is what is another one in each run, and what stands for it in a page.
var unrepeatable = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`https://127\.0\.0\.1:[0-9]+`), "https://omni.example.com"},
	{regexp.MustCompile(`e2e-testrecordedoutputs`), "team-a"},
	{regexp.MustCompile(`[0-9a-f]{64}`), "0f3c..."},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "4c4c4544-0039-3010-8048-b7c04f4a3532"},
	{regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z`), "2026-11-02T09:00:00Z"},
	{regexp.MustCompile(`(Resource Version: +)[0-9]+`), "${1}1042"},
	{regexp.MustCompile(`(?m) [0-9]+[smh]([0-9]+s)?$`), " 5m"},
}

// repeatable is an output as a page shows it: without events, whose order is not certain, and without spaces at the end.
func repeatable(output string) string {
	output, _, _ = strings.Cut(output, "\nEvents:")

	for _, one := range unrepeatable {
		output = one.what.ReplaceAllString(output, one.by)
	}

	return regexp.MustCompile(`(?m) +$`).ReplaceAllString(strings.TrimRight(output, "\n"), "") + "\n"
}

// The outputs that docs/concepts/status.md shows are what its commands print of three clusters: one that runs, one that
// is suspended before it was made, and one that lacks its control plane.
func TestRecordedOutputs(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.cluster("demo")
	f.apply(clusterManifest("staged", "  suspend: true"), controlPlaneManifest("staged", "staged", f.machines[1]), clusterManifest("unfinished"))
	f.waitCondition("ocl", "staged", v1alpha1.ConditionPlanned, metav1.ConditionTrue, "")
	f.waitCondition("ocl", "unfinished", v1alpha1.ConditionAssembled, metav1.ConditionFalse, "")

	for _, of := range []string{"ocp/demo-cp", "ow/demo-w"} {
		f.run("wait", of, "--for=condition=Ready", "--timeout=60s")
	}

	root, err := env.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(root, filepath.FromSlash(recordedPage))

	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	blocks := pageBlocks(t, recordedPage, recordedBlock)
	if len(blocks) == 0 {
		t.Fatal("the page shows no outputs")
	}

	text, r := string(page), f.newReader()

	for _, block := range blocks {
		command, _, _ := strings.Cut(block.text, "\n")
		now := command + "\n" + repeatable(r.types(strings.TrimPrefix(command, "$ ")))

		if diff := cmp.Diff(block.text, now); diff != "" && !*record {
			t.Errorf("%s prints something else; -record writes it into the page (-page +now):\n%s", command, diff)
		}

		text = strings.Replace(text, block.text, now, 1)
	}

	if *record {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
