//go:build realomni

package realomni

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/siderolabs/omni/client/pkg/omni/resources"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/cmd/kubectl-omni/app"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// exportedCluster is a template that somebody else applies, with what the real Omni takes without machines.
const exportedCluster = `kind: Cluster
name: Exported_1
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
      metadata: {name: apps} # a comment
  - name: alpha
    mode: full
    inline: |
      apiVersion: v1
      kind: Namespace
      metadata:
        name: plain
  healthchecks:
  - name: nodes
    idOverride: exported-nodes
    interval: 45s
    job: |
      apiVersion: batch/v1
      kind: Job
      metadata:
        name: check
talos: {version: v1.13.3}
features: {diskEncryption: true, backupConfiguration: {interval: 1h}}
patches:
- name: mapping
  labels: {patch: label}
  inline: {machine: {sysctls: {a: "1"}}}
- idOverride: 700-text
  inline: |
    # a comment that Omni keeps
    machine: {sysctls: {b: "2"}}
---
kind: ControlPlane
machines: [27c16241-96bf-4f17-9579-000000000020]
upgradeStrategy: {type: Rolling, rolling: {maxParallelism: 1}}
patches:
- name: control
  inline: {cluster: {allowSchedulingOnControlPlanes: true}}
---
kind: Workers
name: static
labels: {set: label}
machines: [27c16241-96bf-4f17-9579-000000000021, 27c16241-96bf-4f17-9579-000000000022]
updateStrategy: {type: Unset}
deleteStrategy: {type: Rolling, rolling: {maxParallelism: 2}}
---
kind: Workers
machines: [27c16241-96bf-4f17-9579-000000000023]
---
kind: Machine
name: 27c16241-96bf-4f17-9579-000000000021
locked: true
install: {disk: /dev/vda}
patches:
- name: network
  inline: {machine: {network: {hostname: one}}}
---
kind: Machine
name: 27c16241-96bf-4f17-9579-000000000022
labels: {rack: "7"}
annotations: {note: spare}
`

// A cluster that somebody else made is exported by a Reader with the real program, and applied: Omni gets the mark
// and nothing else.
func TestExportedClusterIsTakenOver(t *testing.T) {
	s := &scenario{T: t}
	s.start()

	if err := omnisim.SyncTemplate(t.Context(), s.other, []byte(exportedCluster)); err != nil {
		t.Fatal(err)
	}

	before := s.settled("Exported_1")

	if _, stderr, err := s.export(s.account("nobody", omnisim.RoleNone)); err == nil || !strings.Contains(stderr, "Reader is needed") {
		t.Errorf("without a role: %v: %s", err, stderr)
	}

	key := s.account("exporter", omnisim.RoleReader)

	manifests, warnings, err := s.export(key)
	if err != nil {
		t.Fatalf("%v: %s", err, warnings)
	}

	t.Logf("%s\n%s", warnings, manifests)

	for line := range strings.Lines(warnings) {
		if !strings.Contains(line, "may hold secrets") {
			t.Errorf("unexpected warning: %s", line)
		}
	}

	if diff := cmp.Diff(before, s.versions("Exported_1")); diff != "" {
		t.Errorf("the export wrote to Omni (-before +after):\n%s", diff)
	}

	s.kubectl("create", "secret", "generic", "omni-service-account", "--from-literal=serviceAccountKey="+os.Getenv("OMNI_SERVICE_ACCOUNT_KEY"))
	s.apply(strings.Replace(manifests, "changePolicy: Observe", "changePolicy: Apply", 1))

	v := &victim{scenario: s, cluster: s.name()}
	v.says(seen{condition: v1alpha1.ConditionSynced, status: metav1.ConditionTrue})
	s.kubectl("wait", "ocl/"+v.cluster, "--for=jsonpath={.status.plan.creates}=0", "--timeout=60s")
	time.Sleep(settleTime) // in which nothing may happen that no poll would see

	if out, _, err := s.stack.Kubectl(t.Context(), "-n", namespace, "get", "ocl", v.cluster, "-o", "jsonpath={.status.adopting}{.status.plan.updates}"); err != nil || out != "0" {
		t.Errorf("adopting and updates: %q (%v)", out, err)
	}

	// The version of the Cluster alone has changed, and it has the mark.
	after := s.versions("Exported_1")
	changed := slices.DeleteFunc(slices.Clone(after), func(line string) bool { return slices.Contains(before, line) })

	if len(after) != len(before) || len(changed) != 1 || !strings.HasPrefix(changed[0], "Clusters.omni.sidero.dev/Exported_1@") {
		t.Errorf("changed in Omni: %v (-before +after):\n%s", changed, cmp.Diff(before, after))
	}

	view, err := omnisim.ReadCluster(t.Context(), s.other, "Exported_1")
	if err != nil || view.Annotations[v1alpha1.MarkOwnerNamespace] != namespace || view.Annotations["contact"] != "ops: see the wiki" {
		t.Errorf("%v: annotations %v", err, view.Annotations)
	}

	again, warnings, err := s.export(key)
	if diff := cmp.Diff(manifests, again); err != nil || diff != "" {
		t.Errorf("a second export: %v (-first +second):\n%s", err, diff)
	}

	if !strings.Contains(warnings, "it belongs to the OmniCluster "+namespace+"/"+v.cluster) {
		t.Errorf("no owner in %s", warnings)
	}

	s.kubectl("delete", "ocl", v.cluster, "--timeout=60s")
}

// name is that of the only OmniCluster.
func (s *scenario) name() string {
	s.Helper()

	name, _, err := s.stack.Kubectl(s.Context(), "-n", namespace, "get", "ocl", "-o", "jsonpath={.items[*].metadata.name}")
	if err != nil {
		s.Fatal(err)
	}

	return name
}

// export runs kubectl omni export.
func (s *scenario) export(key string) (stdout, stderr string, err error) {
	s.Helper()

	keyFile := filepath.Join(s.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(key), 0o600); err != nil {
		s.Fatal(err)
	}

	var out, errOut bytes.Buffer

	if status := app.Main(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}, []string{
		"export", "--service-account-key-file=" + keyFile, "--endpoint=" + os.Getenv("OMNI_ENDPOINT"), "--ca-file=" + os.Getenv("OMNI_CA_FILE"),
		"--cluster=Exported_1", "--namespace=" + namespace, "--with-connection",
	}); status != 0 {
		err = fmt.Errorf("status %d", status)
	}

	if strings.Contains(out.String()+errOut.String(), key) {
		s.Error("the export shows the key")
	}

	return out.String(), errOut.String(), err
}

// account makes a service account and returns its key.
func (s *scenario) account(name string, role omnisim.Role) string {
	s.Helper()

	ca, err := os.ReadFile(os.Getenv("OMNI_CA_FILE"))
	if err != nil {
		s.Fatal(err)
	}

	admin, err := omnisim.Connect(os.Getenv("OMNI_ENDPOINT"), os.Getenv("OMNI_SERVICE_ACCOUNT_KEY"), ca)
	if err != nil {
		s.Fatal(err)
	}

	key, err := omnisim.CreateAccount(s.Context(), admin, name, role, time.Hour)
	if err = errors.Join(err, admin.Close()); err != nil {
		s.Fatal(err)
	}

	return key
}

// settled is versions once Omni's own controllers, which put finalizers on what is new, have been quiet for a while.
func (s *scenario) settled(cluster string) []string {
	s.Helper()

	last, since := s.versions(cluster), time.Now()

	if err := env.Eventually(s.Context(), eventually, "Omni to be quiet", func(context.Context) error {
		if now := s.versions(cluster); !slices.Equal(now, last) {
			last, since = now, time.Now()
		}

		if quiet := time.Since(since); quiet < settleTime {
			return fmt.Errorf("quiet for %s", quiet)
		}

		return nil
	}); err != nil {
		s.Fatal(err)
	}

	return last
}

// versions lists what people own of a cluster, with the version of each resource.
func (s *scenario) versions(cluster string) []string {
	s.Helper()

	var (
		lines []string
		all   error
	)

	add := func(items []resource.Resource, err error) {
		all = errors.Join(all, err)

		for _, item := range items {
			if item.Metadata().Owner() == "" {
				lines = append(lines, fmt.Sprintf("%s/%s@%s %s", item.Metadata().Type(), item.Metadata().ID(), item.Metadata().Version(), item.Metadata().Phase()))
			}
		}
	}

	one, err := s.other.Get(s.Context(), omni.NewCluster(cluster).Metadata())
	add([]resource.Resource{one}, err)

	for _, kind := range []resource.Type{
		omni.MachineSetType, omni.MachineSetNodeType, omni.ConfigPatchType, omni.ExtensionsConfigurationType,
		omni.KubernetesManifestGroupType, omni.KubernetesHealthCheckType,
	} {
		list, err := s.other.List(s.Context(), resource.NewMetadata(resources.DefaultNamespace, kind, "", resource.VersionUndefined),
			state.WithLabelQuery(resource.LabelEqual(omni.LabelCluster, cluster)))
		add(list.Items, err)
	}

	if all != nil {
		s.Fatal(all)
	}

	return lines
}
