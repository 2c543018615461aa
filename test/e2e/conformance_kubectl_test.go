package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The commands that people type, on all kinds at once.

// allKinds is a file with one object of each kind.
func allKinds(t *testing.T, name string) string {
	t.Helper()

	var manifests []string
	for _, k := range subjects {
		manifests = append(manifests, k.manifest(t, name))
	}

	return strings.Join(manifests, "\n---\n")
}

func TestKubectlTables(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	s.kubectlApply(allKinds(t, "x"))

	for _, k := range subjects {
		table := strings.Split(strings.TrimSpace(s.run("get", k.resource, "-o", "wide")), "\n")
		if got := strings.Join(strings.Fields(table[0]), " "); got != k.headings || len(table) != 2 || !strings.HasPrefix(table[1], "x ") {
			t.Errorf("%s: %q, want the headings %q and one row", k.kind, table, k.headings)
		}
	}

	// The category has them all, by name.
	out := s.run("get", "omni", "-o", "name")
	for _, k := range subjects {
		if want := strings.ToLower(k.kind) + ".omni.texashpc.com/x\n"; !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}

	if out := s.run("describe", "omni"); strings.Count(out, "Kind:         Omni") != len(subjects) {
		t.Errorf("describe:\n%s", out)
	}
}

// kubectl apply keeps what others set, changes what changed in the file, and removes what left it. It
// sends strategic merge patches, because our document offers them.
func TestKubectlAppliesAgain(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	file := func(version, patches string) string {
		return clusterManifest("c", "  suspend: true", "  labels: {file: v"+version+"}", "  patches: "+patches)
	}
	first := `[{name: p, inline: {machine: {sysctls: {a: "1"}, network: {nameservers: [1.1.1.1, 8.8.8.8]}}}}, {name: q, inline: {machine: {env: {X: y}}}}]`
	second := `[{name: p, inline: {machine: {sysctls: {b: "2"}, network: {nameservers: [8.8.8.8]}}}}]`

	s.kubectlApply(file("1", first))
	s.run("patch", "ocl", "c", "--type=merge", "-p", `{"metadata":{"labels":{"other":"tool"}},"spec":{"annotations":{"other":"tool"}}}`)

	difference, err := s.tryInput(file("2", second), "diff", "-f", "-")
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(difference, "+      file: v2") && !strings.Contains(difference, "+    file: v2") {
		t.Errorf("diff: %v\n%s", err, difference)
	}

	s.kubectlApply(file("2", second))

	got := s.run("get", "ocl", "c", "-o", "jsonpath={.metadata.labels.other} {.spec.annotations.other} {.spec.labels.file} {.spec.patches}")
	if want := `tool tool v2 [{"inline":{"machine":{"network":{"nameservers":["8.8.8.8"]},"sysctls":{"b":"2"}}},"name":"p"}]`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}

	// Nothing to do is seen as such.
	if out := s.kubectlApply(file("2", second)); !strings.Contains(out, "unchanged") {
		t.Errorf("the same again: %s", out)
	}

	if out, err := s.tryInput(file("2", second), "diff", "-f", "-"); err != nil {
		t.Errorf("diff of the same: %v\n%s", err, out)
	}
}

// Two people edit one object: the second to save is told.
func TestKubectlReplaceAndEdit(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	s.kubectlApply(allKinds(t, "x"))

	// The controller may have written in between.
	s.wait("all objects to be written as they are", func() error {
		out, err := s.tryInput(s.run("get", "omni", "-o", "json"), "replace", "-f", "-")
		if err == nil && strings.Count(out, " replaced\n") != len(subjects) {
			err = fmt.Errorf("replaced %s", out)
		}

		return err
	})

	// The annotation of kubectl apply has the live objects now. An apply of the file goes on all the same.
	s.kubectlApply(allKinds(t, "x"))

	stale := s.run("get", "omni", "-o", "json")
	s.run("label", "omni", "--all", "a=b")

	out, err := s.tryInput(stale, "replace", "-f", "-")
	if err == nil || strings.Count(err.Error(), "the object has been modified") != len(subjects) {
		t.Errorf("%s %v", out, err)
	}

	// An editor that changes a line, with the real kubectl edit.
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nsed -i 's/a: b$/a: edited/' \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}

	for _, k := range subjects[:2] {
		edit := exec.CommandContext(t.Context(), stack.KubectlPath(), "-n", s.name, "edit", k.resource, "x")
		edit.Env = append(stack.KubectlEnv(), "KUBE_EDITOR="+editor)

		if edited, err := edit.CombinedOutput(); err != nil || !strings.Contains(string(edited), "edited") {
			t.Errorf("%s: %s %v", k.kind, edited, err)
		}

		if got := s.run("get", k.resource, "x", "-o", "jsonpath={.metadata.labels.a}"); got != "edited" {
			t.Errorf("%s: label %q", k.kind, got)
		}
	}
}

func TestKubectlWaitsAndScales(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	s.kubectlApply(allKinds(t, "x"))

	for _, k := range subjects {
		// The condition that the controller sets of whatever it cannot do. A policy refers to nothing that could be absent.
		comes, never := "Ready=False", "Ready=True"
		if k.kind == "OmniRolloutPolicy" {
			comes, never = never, comes
		}

		if k.kind != "OmniHelmRelease" && k.kind != "OmniCluster" {
			s.run("wait", k.resource+"/x", "--for=condition="+comes, "--timeout=90s")
		}

		out, err := s.try("wait", k.resource+"/x", "--for=condition="+never, "--timeout=0s")
		if err == nil || !strings.Contains(err.Error(), "timed out") && !strings.Contains(err.Error(), "condition not met") {
			t.Errorf("%s: %s %v", k.kind, out, err)
		}

		if k.scales() {
			s.scales(k)
		}
	}

	s.run("delete", "omni", "--all", "--wait=false")
	s.run("wait", "omni", "--all", "--for=delete", "--timeout=90s")
}

func (s *space) scales(k subject) {
	s.t.Helper()
	s.run("scale", k.resource+"/x", "--replicas=3", "--current-replicas=1")

	if out, err := s.try("scale", k.resource+"/x", "--replicas=5", "--current-replicas=1"); err == nil || !strings.Contains(err.Error(), "Expected replicas to be 1, was 3") {
		s.t.Errorf("%s: a scale that expects another size: %s %v", k.kind, out, err)
	}

	if got := s.run("get", k.resource, "x", "-o", "jsonpath={.spec.machineClass.size}"); got != "3" {
		s.t.Errorf("%s: size %s", k.kind, got)
	}
}

// docs/concepts/limits.md: the hub counts our objects, and our server refuses nothing because of it.
func TestResourceQuotaIsCountedNotEnforced(t *testing.T) {
	t.Parallel()

	s := newSpace(t)

	var hard, used []string

	for _, k := range subjects {
		s.kubectlApply(k.manifest(t, "one"))
		hard = append(hard, "count/"+k.resource+".omni.texashpc.com=1")
		used = append(used, k.resource)
	}

	s.run("create", "quota", "objects", "--hard="+strings.Join(hard, ","))

	for _, k := range subjects {
		must(k.admin(t, s.name).Create(t.Context(), k.object(t, "two"), metav1.CreateOptions{}))(t)
	}

	s.wait("the hub to count", func() error {
		quota, err := stack.Client().CoreV1().ResourceQuotas(s.name).Get(t.Context(), "objects", metav1.GetOptions{})
		if err != nil {
			return err
		}

		for _, resource := range used {
			// The second may be counted some minutes later.
			if count := quota.Status.Used[corev1.ResourceName("count/"+resource+".omni.texashpc.com")]; count.Value() < 1 {
				return fmt.Errorf("%s: used %v", resource, quota.Status.Used)
			}
		}

		return nil
	})
}
