package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// migrationSteps is how many steps `migrate run` has; those up to reversibleSteps can be undone.
const (
	migrationSteps  = 11
	reversibleSteps = 7
)

// migrating is a former hub on its way.
type migrating struct {
	*former

	backup string
	before map[string]string // what others use
}

// migrate runs the command; with a step it is killed (-9) so long after that has begun. killed reports whether it was.
func (m *migrating) migrate(command string, step int, after time.Duration) (output string, killed bool, err error) {
	m.t.Helper()

	args := []string{"migrate", command, "--kubeconfig", m.hub.KubeconfigPath, "--backup", m.backup, "--yes"}
	if command == "run" {
		args = append(args, "--quiet-time=500ms", "--timeout=40s")
	}

	process := exec.CommandContext(m.t.Context(), os.Args[0], args...)
	process.Env = append(os.Environ(), pluginProcess)

	var stderr strings.Builder

	process.Stderr = &stderr
	stdout := must(process.StdoutPipe())(m.t)

	if err := process.Start(); err != nil {
		m.t.Fatal(err)
	}

	var printed strings.Builder

	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		printed.WriteString(lines.Text() + "\n")

		if step > 0 && strings.HasPrefix(lines.Text(), fmt.Sprintf("[%d/%d]", step, migrationSteps)) {
			time.Sleep(after)

			killed = process.Process.Kill() == nil
		}
	}

	err = process.Wait()

	return printed.String() + stderr.String(), killed && err != nil && err.Error() == "signal: killed", err
}

// nothingLost checks what has to be true at every moment.
func (m *migrating) nothingLost(when string) {
	m.t.Helper()

	if diff := cmp.Diff(m.before, m.consumed()); diff != "" {
		m.t.Fatalf("%s: what others use changed (-before +now):\n%s", when, diff)
	}

	if wrong := m.destroyedOtherThan(); wrong != "" {
		m.t.Fatalf("%s: %s", when, wrong)
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	if len(m.destroyed) > 0 {
		m.t.Fatalf("%s: the old operator was asked to destroy %v", when, m.destroyed)
	}
}

// uninstallFormer takes the page's commands for an installation that has its Namespace: that stays, and Omni's key in it.
func (m *migrating) uninstallFormer() {
	m.t.Helper()

	for _, commands := range pageBlocks(m.t, "docs/how-to/migrate.md", "sh") {
		if strings.Contains(commands.text, "owner=helm") {
			m.newReader().types(commands.text)
		}
	}

	left := m.run("get", "deployments,services,secrets", "-n", formerNamespace, "-o", "name")
	if left += m.run("get", "clusterrole", "omni-cluster-operator-manager-role", "--ignore-not-found", "-o", "name"); left != "secret/omni-service-account\n" {
		m.t.Errorf("after the uninstallation:\n%s", left)
	}

	if phase := m.run("get", "namespace", formerNamespace, "-o", "jsonpath={.status.phase}"); phase != "Active" {
		m.t.Errorf("its Namespace is %s", phase)
	}
}

// install installs our operator, as the command asks.
func (m *migrating) install() {
	m.t.Helper()

	var err error
	if m.hub.OmniAPIServer, err = m.hub.StartOmniAPIServer(m.t.Context(), env.OmniAPIServerOptions{}); err != nil {
		m.t.Fatal(err)
	}

	if m.hub.Controller, err = m.hub.StartController(m.t.Context(), env.ControllerOptions{
		Namespace: m.name, DestroySettleTime: settleTime, Args: []string{"--allow-insecure-omni"},
	}); err != nil {
		m.t.Fatal(err)
	}
}

// 33 objects of the operator with CRDs become ours by `migrate run`, which is killed three times in each of its steps, and
// undone once: nothing is destroyed, nobody who uses what they made notices, and each plan is empty or stays observed.
func TestMigrate(t *testing.T) {
	slow(t)
	t.Parallel()

	m := &migrating{former: newFormer(t), backup: filepath.Join(t.TempDir(), "backup.json")}
	m.before = m.consumed()
	original := m.objects()

	for step := 1; step <= reversibleSteps; step++ {
		m.killAt(step)
	}

	if output, _, err := m.migrate("undo", 0, 0); err != nil {
		t.Fatalf("undo: %v\n%s", err, output)
	}

	m.nothingLost("after undo")
	m.backAsItWas(original)

	m.killAt(reversibleSteps + 1)

	output, _, err := m.migrate("run", 0, 0)
	if err == nil || !strings.Contains(output, "is not installed yet") || !strings.Contains(output, "Namespace "+formerNamespace+" is part of the old installation") {
		t.Fatalf("before our operator is installed: %v\n%s", err, output)
	}

	if output, _, err := m.migrate("undo", 0, 0); err == nil || !strings.Contains(output, "there is no way back") {
		t.Errorf("undo when the definitions are gone: %v\n%s", err, output)
	}

	m.nothingLost("after the definitions went")
	m.uninstallFormer()
	m.install()

	for step := reversibleSteps + 2; step <= migrationSteps; step++ {
		m.killAt(step)
	}

	m.takesOver()
}

// killAt kills the command when a step begins, and twice later.
func (m *migrating) killAt(step int) {
	m.t.Helper()

	for _, after := range []time.Duration{0, 60 * time.Millisecond, 300 * time.Millisecond} {
		output, killed, err := m.migrate("run", step, after)
		m.t.Logf("step %d, killed %s after it began: %t (%v)", step, after, killed, err)
		m.nothingLost(fmt.Sprintf("killed in step %d", step))

		if after == 0 && !killed {
			m.t.Fatalf("step %d was not killed: %v\n%s", step, err, output)
		}

		// What was quicker than the kill has gone on to its end: no step after this one may be killed any more.
		if !killed && step <= reversibleSteps {
			m.t.Fatalf("step %d ended before it was killed, and so did the others: %v\n%s", step, err, output)
		}
	}
}

// backAsItWas checks that the old operator has everything back.
func (m *migrating) backAsItWas(original map[string]string) {
	m.t.Helper()

	if diff := cmp.Diff(original, m.objects()); diff != "" {
		m.t.Errorf("objects after undo (-before +now):\n%s", diff)
	}

	if got := m.run("get", "deployment", formerDeployment, "-n", formerNamespace, "-o", "jsonpath={.spec.replicas}"); got != "2" {
		m.t.Errorf("the Deployment has %s replicas", got)
	}

	if _, err := m.try("label", "omnicluster", "demo", "refused=yes", "--dry-run=server"); err == nil {
		m.t.Error("the webhook is not back")
	}

	m.ownsRendered()
}

// takesOver runs the command to its end, with the one plan that is not empty made empty by its user.
func (m *migrating) takesOver() {
	t := m.t
	t.Helper()

	output, _, err := m.migrate("run", 0, 0)
	if err == nil || !strings.Contains(output, "OmniCluster "+m.name+"/other: observed") || !strings.Contains(output, "changed: by-hand") {
		t.Fatalf("a plan that is not empty: %v\n%s", err, output)
	}

	m.reports(output, map[string]string{
		"OmniCluster demo": "taken over", "OmniCluster idle": "suspended", "OmniCluster other": "observed", "OmniConnection gone": "not ready",
	})
	m.nothingLost("after the import")
	m.run("patch", "omnicluster", "other", "--type=merge", "-p", `{"spec":{"labels":null}}`)

	if output, _, err = m.migrate("run", 0, 0); err != nil {
		t.Fatalf("to its end: %v\n%s", err, output)
	}

	m.reports(output, map[string]string{
		"OmniCluster demo": "taken over", "OmniCluster idle": "suspended", "OmniCluster other": "taken over", "OmniConnection gone": "not ready",
	})

	for name, want := range map[string]v1alpha1.OmniClusterSpec{
		"demo":  {DeletePolicy: v1alpha1.OmniClusterDeletePolicy{DestroyMachines: true}},
		"idle":  {Suspend: true},
		"other": {},
	} {
		cluster := get[v1alpha1.OmniCluster](m.space, "ocl", name)
		if cluster.Spec.ChangePolicy != v1alpha1.ChangePolicyApply || cluster.Spec.DeletePolicy != want.DeletePolicy || cluster.Spec.Suspend != want.Suspend {
			t.Errorf("%s: %+v", name, cluster.Spec)
		}

		if ready := apimeta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReady); !ready && !want.Suspend {
			t.Errorf("%s is not Ready: %+v", name, cluster.Status.Conditions)
		}
	}

	m.nothingLost("at the end")
	m.permitsNothing()
	m.keepsRendered()

	for _, write := range m.omni.Writes() {
		if write.Verb != "Update" || write.Type != "Clusters.omni.sidero.dev" {
			t.Errorf("written to Omni: %s %s %s", write.Verb, write.Type, write.ID)
		}
	}

	m.writesNothing()
	m.staysDeleted()
}

// reports checks the states in the report of a run, which leaves out what is Ready. The machines of a cluster that nobody
// applies may be known by then or not, and its control plane was not Ready before.
func (m *migrating) reports(output string, want map[string]string) {
	m.t.Helper()

	_, report, found := strings.Cut(output, "\nReport\n")
	if !found {
		m.t.Fatalf("there is no report in\n%s", output)
	}

	got := map[string]string{}

	for _, line := range regexp.MustCompile(`(?m)^  (Omni\w+) `+m.name+`/(\S+): (.+)$`).FindAllStringSubmatch(report, -1) {
		got[line[1]+" "+line[2]] = line[3]
	}

	for _, either := range []string{"OmniControlPlane idle-cp", "OmniControlPlane other-cp"} {
		if got[either] == "not ready" {
			delete(got, either)
		}
	}

	if diff := cmp.Diff(want, got); diff != "" {
		m.t.Errorf("the report (-want +got):\n%s\n%s", diff, output)
	}
}

// permitsNothing checks that no copy or release may take over what others make later.
func (m *migrating) permitsNothing() {
	m.t.Helper()

	got := m.run("get", "omnisecretsyncs,omnihelmreleases", "-o", `jsonpath={range .items[*]}{.spec.adopt}{.spec.takeOwnership}{"\n"}{end}`)
	if want := strings.TrimSpace(strings.Repeat("false\n", formerSyncs+formerReleases)); strings.TrimSpace(got) != want {
		m.t.Errorf("permissions after the takeover:\n%s", got)
	}
}

// staysDeleted runs the command once more after a user has deleted an object that it made.
func (m *migrating) staysDeleted() {
	m.t.Helper()

	name := m.run("get", "omnisecretsyncs", "-o", "jsonpath={.items[0].metadata.name}")
	m.run("delete", "omnisecretsync", name)

	output, _, err := m.migrate("run", 0, 0)
	if left := m.run("get", "omnisecretsync", name, "--ignore-not-found", "-o", "name"); left != "" {
		m.t.Errorf("what its user deleted is back: %v\n%s", err, output)
	}
}

// writesNothing runs the command once more.
func (m *migrating) writesNothing() {
	m.t.Helper()

	versions := func() string {
		return m.run("get", strings.Join(formerKinds, ","), "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.generation}{"\n"}{end}`)
	}
	before := versions()

	if output, _, err := m.migrate("run", 0, 0); err != nil {
		m.t.Fatalf("once more: %v\n%s", err, output)
	}

	if diff := cmp.Diff(before, versions()); diff != "" {
		m.t.Error(errors.New(diff))
	}
}
