package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// foreignCluster is an Omni with a cluster that somebody else made.
func foreignCluster(t *testing.T) (*omnisim.Server, Options) {
	t.Helper()

	sim, err := omnisim.Start(omnisim.Options{Phase: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	key, err := sim.CreateServiceAccount("exporter", omnisim.RoleOperator, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	machines, err := sim.AddMachines(3)
	if err != nil {
		t.Fatal(err)
	}

	if err := sim.AddMachineClass("pool", "pool = a"); err != nil {
		t.Fatal(err)
	}

	if err := omnisim.SyncTemplate(t.Context(), sim.State(), []byte(fmt.Sprintf(richTemplate, machines[0], machines[1], machines[1]))); err != nil {
		t.Fatal(err)
	}

	return sim, Options{
		Endpoint: sim.Endpoint(), Key: []byte(key), KeySource: "--service-account-key-file", CABundle: sim.CAPEM(),
		All: true, Namespace: "fleet", Connection: "omni", WithConnection: true, Secret: "omni-service-account",
	}
}

const richTemplate = `kind: Cluster
name: C_Rich
labels: {team: platform}
kubernetes:
  version: v1.35.1
  manifests:
  - name: zeta
    mode: one-time
    inline: |
      apiVersion: v1
      kind: Namespace
      metadata: {name: apps}
  healthchecks:
  - name: nodes
    interval: 45s
    job: |
      apiVersion: batch/v1
      kind: Job
talos: {version: v1.13.3}
features: {enableWorkloadProxy: true, backupConfiguration: {interval: 1h}}
patches:
- name: mapping
  inline: {machine: {sysctls: {a: "1"}}}
- name: text
  inline: |
    # a comment that Omni keeps
    machine: {sysctls: {b: "2"}}
---
kind: ControlPlane
machines: [%s]
---
kind: Workers
name: static
machines: [%s]
updateStrategy: {type: Unset}
---
kind: Workers
machineClass: {name: pool, size: unlimited}
---
kind: Machine
name: %s
locked: true
install: {disk: /dev/vda}
kernelArgs: [quiet]
systemExtensions: []
`

func TestForeignClusterIsExportedWithoutGaps(t *testing.T) {
	_, options := foreignCluster(t)

	result, err := Run(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}

	for _, warning := range result.Warnings {
		if !strings.Contains(warning, "may hold secrets") {
			t.Errorf("unexpected warning: %s", warning)
		}
	}

	if len(result.Clusters) != 1 || bytes.Contains(result.Connection.Text, options.Key) {
		t.Fatalf("%d clusters", len(result.Clusters))
	}

	text := string(result.Clusters[0].Text)
	for _, want := range []string{
		"clusterName: C_Rich", "\n  adopt: true", "\n  changePolicy: Observe", "\n  deletePolicy:\n    orphan: true", "size: unlimited", "locked: true", "disk: /dev/vda", "- quiet", "systemExtensions: []",
		"# a comment that Omni keeps", "workerSetName: workers", "type: Unset",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}

	again, err := Run(t.Context(), options)
	if err != nil || !bytes.Equal(again.Clusters[0].Text, result.Clusters[0].Text) {
		t.Errorf("a second export differs (%v)", err)
	}
}

// TestConnectionIsExportedOnRequest: applied beside a connection of that name, one with a Secret of its own would take the key away
// from every cluster there.
func TestConnectionIsExportedOnRequest(t *testing.T) {
	_, options := foreignCluster(t)

	for _, with := range []bool{true, false} {
		options.WithConnection = with

		result, err := Run(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}

		var all string
		for _, file := range result.Files() {
			all += file.Name + ":\n" + string(file.Text)
		}

		for _, want := range []string{"connection-omni:", "kind: OmniConnection", "omni-service-account"} {
			if strings.Contains(all, want) != with {
				t.Errorf("with the connection %t: %q is in the export %t\n%s", with, want, !with, all)
			}
		}
	}
}

// TestStepsOfATakeover: the file says what to do with it, in comments, and the connection's says what applying it replaces.
func TestStepsOfATakeover(t *testing.T) {
	_, options := foreignCluster(t)

	result, err := Run(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}

	text := string(result.Clusters[0].Text)
	for _, want := range []string{
		"changes nothing in Omni", "namespace of OmniConnection omni", "-n fleet -o jsonpath='{.status.plan.diff}'", "changePolicy to Apply",
		"{.status.adopting}", "deletePolicy.orphan",
	} {
		comments, _, _ := strings.Cut(text, "\napiVersion")
		if !strings.Contains(comments, want) {
			t.Errorf("no %q in the comments of\n%s", want, text)
		}
	}

	if text := string(result.Connection.Text); !strings.HasPrefix(text, "# OmniConnection omni. If the namespace has one of this name, do not apply this") {
		t.Errorf("the connection's file begins with\n%s", text)
	}
}

// Resources that our kinds cannot express are named.
func TestGapsAreNamed(t *testing.T) {
	sim, options := foreignCluster(t)

	if err := omnisim.AnnotateCluster(t.Context(), sim.State(), "C_Rich", "omni.texashpc.com/owner-uid", "uid-of-another"); err != nil {
		t.Fatal(err)
	}

	if err := omnisim.AnnotateCluster(t.Context(), sim.State(), "C_Rich", "omni.sidero.dev/cluster-locked", ""); err != nil {
		t.Fatal(err)
	}

	result, err := Run(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}

	all := strings.Join(result.Warnings, "\n")
	for _, want := range []string{"locked in Omni", "uid-of-another", "release the cluster there first"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %s", want, all)
		}
	}

	if text := string(result.Clusters[0].Text); strings.Contains(text, "owner-uid") || strings.Contains(text, "cluster-locked") {
		t.Errorf("a mark was exported:\n%s", text)
	}
}

// A cluster that goes away while all of them are exported is left out, and named. One that was asked for by name is an error.
func TestClusterThatGoesAway(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*testing.T, *omnisim.Server)
		names   []string
		files   int
		left    string // the cluster that is left out
	}{
		"gone": {func(*testing.T, *omnisim.Server) {}, []string{"A_gone", "C_Rich"}, 1, "A_gone"},
		"being destroyed": {func(t *testing.T, sim *omnisim.Server) {
			sim.Pause()

			if _, err := sim.State().Teardown(t.Context(), resource.NewMetadata("default", "Clusters.omni.sidero.dev", "C_Rich", resource.VersionUndefined)); err != nil {
				t.Fatal(err)
			}
		}, []string{"C_Rich"}, 0, "C_Rich"},
	} {
		t.Run(name, func(t *testing.T) {
			sim, options := foreignCluster(t)
			test.prepare(t, sim)

			all := &Result{}
			if err := all.addClusters(t.Context(), sim.State(), &omni.Capabilities{}, test.names, options); err != nil || len(all.Clusters) != test.files {
				t.Errorf("%d clusters, %v", len(all.Clusters), err)
			}

			if want := fmt.Sprintf("cluster %q is not in the export", test.left); !strings.Contains(strings.Join(all.Warnings, "\n"), want) {
				t.Errorf("no %q in %q", want, all.Warnings)
			}

			options.All, options.Clusters = false, test.names
			if err := new(Result).addClusters(t.Context(), sim.State(), &omni.Capabilities{}, test.names, options); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("cluster %q: ", test.left)) {
				t.Errorf("by name: %v", err)
			}
		})
	}
}

// An export that is interrupted says so, and not once for each cluster.
func TestInterruptedExport(t *testing.T) {
	sim, options := foreignCluster(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stop"))

	if err := new(Result).addClusters(ctx, sim.State(), &omni.Capabilities{}, []string{"C_Rich", "another", "third"}, options); err == nil || err.Error() != "stop" {
		t.Errorf("%v", err)
	}
}

func TestErrorsNameFlagAndRemedy(t *testing.T) {
	_, options := foreignCluster(t)

	other, err := omnisim.Start(omnisim.Options{Manual: true})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(other.Close)

	for name, test := range map[string]struct {
		change func(*Options)
		want   []string
	}{
		"environment block": {func(o *Options) { o.Key = append([]byte("OMNI_SERVICE_ACCOUNT_KEY="), o.Key...) }, []string{"--service-account-key-file", "environment block"}},
		"not a key":         {func(o *Options) { o.Key = []byte("canary!") }, []string{"--service-account-key-file", "base64"}},
		"another Omni":      {func(o *Options) { o.Endpoint, o.CABundle = other.Endpoint(), other.CAPEM() }, []string{"--service-account-key-file", "does not accept"}},
		"another CA":        {func(o *Options) { o.CABundle = other.CAPEM() }, []string{"--ca-file"}},
		"no URL":            {func(o *Options) { o.Endpoint = "omni.example.com" }, []string{"--endpoint"}},
		"unknown cluster":   {func(o *Options) { o.All, o.Clusters = false, []string{"C_Rihc"} }, []string{"--cluster", `"C_Rihc"`, "near: C_Rich"}},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := options
			test.change(&wrong)

			_, err := Run(t.Context(), wrong)
			if err == nil {
				t.Fatal("no error")
			}

			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in %q", want, err)
				}
			}

			if strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), string(options.Key)) {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stop"))

	if _, err := Run(ctx, options); err == nil {
		t.Error("a cancelled export succeeds")
	}

}

func TestSuggest(t *testing.T) {
	many := []string{"a1", "b22222", "c333333", "d4444444", "e55555555", "f66666666"}

	for name, test := range map[string]struct {
		name     string
		existing []string
		want     string
	}{
		"none":   {"a", nil, "it has no clusters that this service account may see"},
		"typing": {"prod-eats", []string{"prod-east", "staging"}, "near: prod-east"},
		"case":   {"PROD", []string{"prod", "staging"}, "near: prod"},
		"few":    {"zzzzzzzzzzzz", []string{"prod", "test"}, "it has: prod, test"},
		"many":   {"zzzzzzzzzzzzzzzz", many, "it has: a1, b22222, c333333, d4444444, e55555555, and 1 more"},
	} {
		if got := suggest(test.name, test.existing); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
