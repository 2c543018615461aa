package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Accounts of the simulators: whoever made the clusters, and whoever exports them.
const (
	stranger = "stranger"
	exporter = "exporter"
)

// A cluster with everything in it is exported, applied, and taken over: Omni gets the mark and nothing else.
func TestExportedClusterIsTakenOver(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.made(fmt.Sprintf(richCluster, "C_Rich", f.machines[0], f.machines[1], f.machines[2], pool))

	key, fresh := f.exportKey(), f.fresh()
	manifests, warnings := f.mustExport(key, "--cluster=C_Rich", "--namespace="+fresh.name, "--with-connection")

	for line := range strings.Lines(warnings) {
		if !strings.HasPrefix(line, `warning: cluster "C_Rich": `) || !strings.Contains(line, "may hold secrets") {
			t.Errorf("unexpected warning: %s", line)
		}
	}

	f.wantWrites()

	// Every object passes the checks of the API as it is.
	if out, err := fresh.tryInput(manifests, "apply", "--dry-run=server", "--validate=strict", "-f", "-"); err != nil || strings.Contains(out, "Warning") {
		t.Errorf("%v\n%s", err, out)
	}

	fresh.apply(manifests)

	// As it is, the file shows what a takeover writes, which is the mark alone.
	name := strings.TrimSpace(fresh.run("get", "ocl", "-o", "jsonpath={.items[*].metadata.name}"))
	fresh.says(name, v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonChangesPlanned, "spec.adopt")

	if plan := get[v1alpha1.OmniCluster](fresh.space, "ocl", name).Status.Plan; plan == nil || plan.Creates+plan.Destroys != 0 || plan.Updates != 1 {
		t.Errorf("the plan is %+v", plan)
	}

	f.wantWrites()

	edited := tookOver(t, manifests)
	fresh.apply(edited)
	fresh.takenOver(name)
	f.wantWrites("operator: Update Clusters C_Rich")

	view := f.view("C_Rich")
	if diff := cmp.Diff(map[string]int{"C_Rich-control-planes": 1, "C_Rich-static": 2, "C_Rich-workers": 2}, view.Machines); diff != "" {
		t.Errorf("machines in Omni (-want +got):\n%s", diff)
	}

	if got := view.Annotations[v1alpha1.MarkOwnerNamespace]; got != fresh.name || !f.machineLocked(f.machines[1]) {
		t.Errorf("owner's namespace %q, locked %t", got, f.machineLocked(f.machines[1]))
	}

	// A second apply of the same manifests changes nothing, and a second export says the same.
	for line := range strings.Lines(fresh.kubectlApply(edited)) {
		if !strings.HasSuffix(line, " unchanged\n") {
			t.Errorf("a second apply: %s", line)
		}
	}

	again, warnings := f.mustExport(key, "--cluster=C_Rich", "--namespace="+fresh.name, "--with-connection")
	if diff := cmp.Diff(manifests, again); diff != "" {
		t.Errorf("a second export (-first +second):\n%s", diff)
	}

	if want := "it belongs to the OmniCluster " + fresh.name + "/" + name; !strings.Contains(warnings, want) {
		t.Errorf("no %q in %s", want, warnings)
	}

	f.wantWrites("operator: Update Clusters C_Rich")
}

// oddCluster has names and values that Omni takes and Kubernetes would not take as names.
const oddCluster = `kind: Cluster
name: %[1]s
labels: {Free_Form: "a b / c", "x y": ""}
annotations: {"no domain / at all": "yes"}
kubernetes: {version: v1.35.1}
talos: {version: v1.13.3}
patches:
- idOverride: 400 Odd/ID
  inline: {machine: {sysctls: {a: "1"}}}
- idOverride: 400 odd/id
  inline: "# another, whose name differs in letters only\nmachine: {sysctls: {b: \"0x10\"}}"
---
kind: ControlPlane
machines: [%[2]s]
---
kind: Workers
name: W_1
machineClass: {name: %[3]s, size: 0}
---
kind: Workers
name: w-1
machineClass: {name: %[3]s, size: unlimited}
`

// Names that Kubernetes does not take get others; what people see in Omni stays.
func TestExportOfOddNames(t *testing.T) {
	t.Parallel()

	f := newFleet(t)

	name := "Very_Long_" + strings.Repeat("name-", 10) + "end"
	f.made(fmt.Sprintf(oddCluster, name, f.machines[0], pool))

	fresh := f.fresh()
	manifests, _ := f.mustExport(f.exportKey(), "--all", "--with-connection")

	if out, err := fresh.tryInput(manifests, "apply", "--dry-run=server", "--validate=strict", "-f", "-"); err != nil || strings.Contains(out, "Warning") {
		t.Fatalf("%v\n%s", err, out)
	}

	fresh.apply(tookOver(t, manifests))
	fresh.takenOver(strings.TrimSpace(fresh.run("get", "ocl", "-o", "jsonpath={.items[*].metadata.name}")))
	f.wantWrites("operator: Update Clusters " + name)
}

// Every cluster goes into a file of its own, and a directory is applied at once.
func TestExportOfEveryClusterIntoFiles(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.made(fmt.Sprintf(plainCluster, "east", f.machines[0]), fmt.Sprintf(richCluster, "west", f.machines[1], f.machines[2], f.machines[3], pool))

	key, fresh, dir := f.exportKey(), f.fresh(), filepath.Join(t.TempDir(), "clusters")

	stdout, stderr := f.mustExport(key, "--all", "--with-connection", "--output-dir="+dir)
	if stdout != "" || strings.Count(stderr, "wrote ") != 3 {
		t.Errorf("printed %q and %q", stdout, stderr)
	}

	fresh.run("apply", "--validate=strict", "-f", dir)
	fresh.run("patch", "ocl", "east", "west", "--type=merge", "-p", `{"spec":{"changePolicy":"Apply"}}`)
	fresh.takenOver("east")
	fresh.takenOver("west")

	writes := f.omni.Writes()
	if len(writes) == 2 && writes[0].ID == "west" { // they are taken over at the same time
		f.wantWrites("operator: Update Clusters west", "operator: Update Clusters east")
	} else {
		f.wantWrites("operator: Update Clusters east", "operator: Update Clusters west")
	}

	// The same again writes the same files; an edited one is left alone, and with it the others.
	f.mustExport(key, "--all", "--with-connection", "--output-dir="+dir)

	edited, untouched := filepath.Join(dir, "cluster-west.yaml"), filepath.Join(dir, "connection-omni.yaml")
	if err := errors.Join(os.WriteFile(edited, []byte("mine"), 0o600), os.Remove(untouched)); err != nil {
		t.Fatal(err)
	}

	_, stderr, err := f.exported(key, "--all", "--with-connection", "--output-dir="+dir)

	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(stderr, "error: --output-dir: "+edited+" is there with another content") {
		t.Errorf("%v: %s", err, stderr)
	}

	if text, err := os.ReadFile(edited); err != nil || string(text) != "mine" {
		t.Errorf("%v: %s", err, text)
	}

	if _, err := os.Stat(untouched); err == nil {
		t.Error("a part of a refused export was written")
	}
}

// A cluster that another OmniCluster owns stays with it until it is released there.
func TestExportOfAnOwnedCluster(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.cluster("c")
	f.omni.ForgetRequests()

	fresh := f.fresh()

	manifests, warnings := f.mustExport(f.exportKey(), "--cluster=c", "--with-connection")
	if want := "it belongs to the OmniCluster " + f.name + "/c"; !strings.Contains(warnings, want) {
		t.Errorf("no %q in %s", want, warnings)
	}

	if strings.Contains(manifests, v1alpha1.MarkOwnerUID) {
		t.Errorf("the mark was exported:\n%s", manifests)
	}

	fresh.apply(tookOver(t, manifests))
	fresh.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNotOwned, f.name+"/c", "release it there first")
	f.reconciled("c")
	f.wantWrites()

	f.merge(`{"spec":{"deletePolicy":{"orphan":true}}}`)
	f.run("delete", "ocl", "c", "--timeout=60s")
	fresh.takenOver("c")
	fresh.wantWrites("operator: Update Clusters c", "operator: Update Clusters c") // its mark goes, another one comes
	fresh.unchanged("c")
}

// What people get who type something wrong: one line that names the flag, and a failure.
func TestExportErrorsForPeople(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	key := f.exportKey()

	for name, test := range map[string]struct {
		key  string
		args []string
		want []string
	}{
		"unknown flag":    {key, []string{"--all", "--key=x"}, []string{"error: unknown flag: --key"}},
		"no cluster":      {key, nil, []string{"error: one of --cluster NAME (any number of times) and --all is required"}},
		"unknown cluster": {key, []string{"--cluster=nowhere"}, []string{`error: --cluster: Omni has no cluster "nowhere"`}},
		"no key":          {"", []string{"--all"}, []string{"error: --service-account-key-file (or OMNI_SERVICE_ACCOUNT_KEY of the environment) is required"}},
		"wrong key":       {"canary-key", []string{"--all"}, []string{"error: OMNI_SERVICE_ACCOUNT_KEY: ", "base64"}},
		"block as key":    {"OMNI_SERVICE_ACCOUNT_KEY=" + key, []string{"--all"}, []string{"environment block"}},
		"key for a path":  {key, []string{"--all", "--service-account-key-file=/nowhere"}, []string{"error: --service-account-key-file: open /nowhere: no such file or directory"}},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := f.exported(test.key, test.args...)

			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 || stdout != "" {
				t.Errorf("%v, standard output %q", err, stdout)
			}

			for _, want := range test.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("no %q in %s", want, stderr)
				}
			}

			if strings.Contains(stderr, "canary-key") || strings.Contains(stderr, key) {
				t.Errorf("the key is shown: %s", stderr)
			}
		})
	}

	f.wantWrites()
}
