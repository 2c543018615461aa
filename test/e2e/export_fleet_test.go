package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// richCluster is a template with all that a person can write: %[1]s is the cluster, then four machines, and a class.
const richCluster = `kind: Cluster
name: %[1]s
labels: {team: platform, "on": "1.0"}
annotations: {contact: "ops: see the wiki"}
kubernetes:
  version: v1.35.1
  manifests:
  - name: zeta
    mode: one-time
    labels: {a: b}
    inline: |
      apiVersion: v1
      kind: Namespace
      metadata: {name: apps}
      ---
      # two objects, and a comment
      apiVersion: v1
      kind: Namespace
      metadata: {name: more}
  - name: alpha
    mode: full
    inline: |
      apiVersion: v1
      kind: Namespace
      metadata:
        name: plain
talos: {version: v1.13.3}
features: {enableWorkloadProxy: true, diskEncryption: true, backupConfiguration: {interval: 1h}}
systemExtensions: [siderolabs/iscsi-tools]
patches:
- name: mapping
  labels: {patch: label}
  inline: {machine: {sysctls: {a: "1"}}}
- idOverride: 700-%[1]s-text
  inline: |
    # a comment that Omni keeps
    machine: {sysctls: {b: "2"}}
---
kind: ControlPlane
machines: [%[2]s]
upgradeStrategy: {type: Rolling, rolling: {maxParallelism: 1}}
patches:
- name: control
  inline: {cluster: {allowSchedulingOnControlPlanes: true}}
---
kind: Workers
name: static
labels: {set: label}
machines: [%[3]s, %[4]s]
updateStrategy: {type: Unset}
deleteStrategy: {type: Rolling, rolling: {maxParallelism: 2}}
patches:
- name: disk
  inline: {machine: {kubelet: {extraArgs: {feature: "on"}}}}
---
kind: Workers
machineClass: {name: %[5]s, size: 2}
---
kind: Machine
name: %[3]s
locked: true
install: {disk: /dev/vda}
kernelArgs: [quiet]
systemExtensions: []
patches:
- name: network
  inline: {machine: {network: {hostname: one}}}
---
kind: Machine
name: %[4]s
labels: {rack: "7"}
annotations: {note: spare}
`

// plainCluster is the smallest template: a cluster, and a machine.
const plainCluster = `kind: Cluster
name: %s
kubernetes: {version: v1.35.1}
talos: {version: v1.13.3}
---
kind: ControlPlane
machines: [%s]
`

// made has somebody else make clusters in Omni, past our operator but not past the journal.
func (f *fleet) made(templates ...string) {
	f.t.Helper()

	key, err := f.omni.CreateServiceAccount(stranger, omnisim.RoleOperator, time.Hour)
	if err != nil {
		f.t.Fatal(err)
	}

	client, err := omnisim.Connect(f.omni.Endpoint(), key, f.omni.CAPEM())
	if err != nil {
		f.t.Fatal(err)
	}

	for _, text := range templates {
		err = errors.Join(err, omnisim.SyncTemplate(f.t.Context(), client.Omni().State(), []byte(text)))
	}

	if err = errors.Join(err, client.Close()); err != nil {
		f.t.Fatal(err)
	}

	if len(f.omni.Writes()) == 0 {
		f.t.Fatal("the journal has nothing of the other client")
	}

	f.omni.ForgetRequests()
}

// exportKey is the key of a Reader.
func (f *fleet) exportKey() string {
	f.t.Helper()

	key, err := f.omni.CreateServiceAccount(exporter, omnisim.RoleReader, time.Hour)
	if err != nil {
		f.t.Fatal(err)
	}

	return key
}

// exported runs kubectl omni export as a process, as a person does.
func (f *fleet) exported(key string, args ...string) (manifests, warnings string, err error) {
	f.t.Helper()

	ca := filepath.Join(f.t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, f.omni.CAPEM(), 0o600); err != nil {
		f.t.Fatal(err)
	}

	var stdout, stderr bytes.Buffer

	command := exec.CommandContext(f.t.Context(), os.Args[0],
		append([]string{"export", "--endpoint=" + f.omni.Endpoint(), "--ca-file=" + ca}, args...)...)
	command.Env = []string{pluginProcess, "OMNI_SERVICE_ACCOUNT_KEY=" + key}
	command.Stdout, command.Stderr = &stdout, &stderr
	err = command.Run()

	if len(key) > 0 && strings.Contains(stdout.String()+stderr.String(), key) {
		f.t.Error("the export shows the key")
	}

	return stdout.String(), stderr.String(), err
}

// mustExport is exported for a call that has to succeed.
func (f *fleet) mustExport(key string, args ...string) (manifests, warnings string) {
	f.t.Helper()

	manifests, warnings, err := f.exported(key, args...)
	if err != nil {
		f.t.Fatalf("%v: %s", err, warnings)
	}

	return manifests, warnings
}

// tookOver is an exported file after the edit that its comments ask for.
func tookOver(t *testing.T, manifests string) string {
	t.Helper()

	edited := strings.ReplaceAll(manifests, "\n  changePolicy: Observe", "\n  changePolicy: Apply")
	if edited == manifests {
		t.Fatal("the exported cluster does not begin with changePolicy: Observe")
	}

	return edited
}

// fresh is an empty namespace beside the fleet's, with the Secret that an exported connection refers to.
func (f *fleet) fresh() *fleet {
	f.t.Helper()

	other := &fleet{space: newSpaceNamed(f.t, "-fresh"), omni: f.omni, key: f.key, machines: f.machines}
	other.apply(secretManifest("omni-service-account", f.key, f.omni.Endpoint()))

	return other
}

// takenOver waits until the adoption is over and the cluster runs.
func (f *fleet) takenOver(name string) {
	f.t.Helper()
	f.waitCondition("ocl", name, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.wait("the adoption to end", func() error {
		if status := get[v1alpha1.OmniCluster](f.space, "ocl", name).Status; status.Adopting || status.OmniClusterID == "" {
			return fmt.Errorf("adopting %t, cluster %q", status.Adopting, status.OmniClusterID)
		}

		return nil
	})
	f.ready(name)
}

// wantWrites compares everything that clients wrote to Omni.
func (f *fleet) wantWrites(want ...string) {
	f.t.Helper()

	var got []string
	for _, write := range f.omni.Writes() {
		who, _, _ := strings.Cut(write.Who, "@")
		got = append(got, fmt.Sprintf("%s: %s %s %s", who, write.Verb, strings.TrimSuffix(write.Type, ".omni.sidero.dev"), write.ID))
	}

	if diff := cmp.Diff(want, got); diff != "" {
		f.t.Errorf("writes to Omni (-want +got):\n%s", diff)
	}
}
