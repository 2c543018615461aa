package deploy

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// TestApply: a real kube-apiserver accepts everything that is rendered, first as a server-side dry run, then for real,
// without a warning, and keeps every field as it is written.
func TestApply(t *testing.T) {
	t.Parallel()

	hub := startHub(t)
	sets := valueSets(t)

	for _, name := range slices.Sorted(maps.Keys(sets)) {
		t.Run(name, func(t *testing.T) {
			manifest := stream(mustRender(t, sets[name]))

			for _, args := range [][]string{
				{"apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"},
				{"apply", "--server-side", "--validate=strict", "-f", "-"},
			} {
				kubectl(t, hub, manifest, args...)
			}

			for _, object := range decode(t, manifest) {
				checkKept(t, hub, object)
			}

			checkPods(t, hub, decode(t, manifest))

			// The token of a ServiceAccount goes with its account, and may be gone before it is asked for.
			kubectl(t, hub, manifest, "delete", "--ignore-not-found", "-f", "-")
		})
	}

	t.Run("kustomize", func(t *testing.T) {
		manifest := build(t, baseDir)
		kubectl(t, hub, manifest, "apply", "--dry-run=server", "--validate=strict", "-f", "-")
		checkUninstallCommands(t, hub, manifest)
	})

	t.Run("restore", func(t *testing.T) { checkRestorePod(t, hub) })
}

// checkUninstallCommands: what docs/how-to/install.md has for an installation without Helm removes all of it but the
// namespace and the claim with the objects.
func checkUninstallCommands(t *testing.T, hub *env.Hub, manifest string) {
	t.Helper()
	kubectl(t, hub, manifest, "apply", "-f", "-")
	eventually(t, hub, "the claim", func(string) error { return nil }, "get", "pvc", claim, "-n", namespace)

	runShell(t, hub, shellBlock(t, filepath.Join(root, "docs/how-to/install.md"), "kubectl delete apiservice"))

	for _, object := range decode(t, manifest) {
		kind := object.GetKind() + "." + object.GroupVersionKind().Version + "." + object.GroupVersionKind().Group

		_, _, err := hub.Kubectl(t.Context(), "get", kind, object.GetName(), "-n", object.GetNamespace())
		if stays := err == nil; stays != (object.GetKind() == "Namespace") {
			t.Errorf("%s is there after uninstalling: %t (%v)", identity(object), stays, err)
		}
	}

	if got := kubectl(t, hub, "", "get", "pvc", claim, "-n", namespace, "-o", "jsonpath={.metadata.deletionTimestamp}{.metadata.ownerReferences}"); got != "" {
		t.Errorf("the claim is about to go: %q", got)
	}
}

// checkRestorePod: the Pod that docs/how-to/backup.md restores with runs where the operator does, with its user, on its
// volume, and in the place of its data.
func checkRestorePod(t *testing.T, hub *env.Hub) {
	t.Helper()

	script := shellBlock(t, filepath.Join(root, "docs/how-to/backup.md"), "kind: Pod")
	_, rest, _ := strings.Cut(script, "<<END\n")
	manifest, _, _ := strings.Cut(rest, "END\n")

	if !strings.Contains(script, "-n "+namespace+" ") {
		t.Errorf("the Pod is not made in %s: %s", namespace, script)
	}

	restore := decode(t, kubectl(t, hub, manifest, "create", "--dry-run=server", "-n", namespace, "-f", "-", "-o", "json"))[0]
	server := find(t, decode(t, stream(mustRender(t, ""))), "StatefulSet", "omni-apiserver")

	for _, field := range []string{"runAsUser", "fsGroup"} {
		got, _, _ := unstructured.NestedFieldNoCopy(restore.Object, "spec", "securityContext", field)
		if want, _, _ := unstructured.NestedFieldNoCopy(server.Object, "spec", "template", "spec", "securityContext", field); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, that of the server %v", field, got, want)
		}
	}

	for _, want := range []string{"claimName: " + claim, "mountPath: /var/lib/omni-apiserver}", "--etcd-data-dir=/var/lib/omni-apiserver/etcd"} {
		if !strings.Contains(manifest, want) {
			t.Errorf("the Pod has no %q", want)
		}
	}
}

// checkKept: what is stored has everything that is rendered. Defaults may be added.
func checkKept(t *testing.T, hub *env.Hub, want *unstructured.Unstructured) {
	t.Helper()

	kind := strings.ToLower(want.GetKind()) + "." + want.GroupVersionKind().Version + "." + want.GroupVersionKind().Group
	stored := decode(t, kubectl(t, hub, "", "get", kind, want.GetName(), "-n", want.GetNamespace(), "-o", "json"))

	for _, problem := range missing("", want.Object, stored[0].Object) {
		t.Errorf("%s: %s", identity(want), problem)
	}
}

// missing lists the fields of want that got does not have, or has otherwise.
func missing(path string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		stored, ok := got.(map[string]any)
		if !ok && len(want) > 0 {
			return []string{fmt.Sprintf("%s is %v", path, got)}
		}

		var problems []string
		for name, value := range want {
			problems = append(problems, missing(path+"."+name, value, stored[name])...)
		}

		return problems
	case []any:
		stored, _ := got.([]any)
		if len(stored) != len(want) {
			return []string{fmt.Sprintf("%s is %v", path, got)}
		}

		var problems []string
		for i := range want {
			problems = append(problems, missing(fmt.Sprintf("%s[%d]", path, i), want[i], stored[i])...)
		}

		return problems
	}

	if fmt.Sprint(want) != fmt.Sprint(got) {
		return []string{fmt.Sprintf("%s is %v, rendered %v", path, got, want)}
	}

	return nil
}

// checkPods: the Pods that controllers would make pass the restricted Pod Security Standard, which the namespace
// enforces.
func checkPods(t *testing.T, hub *env.Hub, objects []*unstructured.Unstructured) {
	t.Helper()

	checked := 0

	for _, object := range objects {
		template, ok, err := unstructured.NestedMap(object.Object, "spec", "template")
		if err != nil || !ok || object.GetKind() == "Certificate" {
			continue
		}

		pod := &unstructured.Unstructured{Object: template}
		pod.SetAPIVersion("v1")
		pod.SetKind("Pod")
		pod.SetName("dry-run")
		pod.SetNamespace(namespace)

		// Claims are made by the StatefulSet only.
		volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
		for _, claim := range []string{"data", "snapshots"} {
			volumes = append(volumes, map[string]any{"name": claim, "emptyDir": map[string]any{}})
		}

		if err := unstructured.SetNestedSlice(pod.Object, volumes, "spec", "volumes"); err != nil {
			t.Fatal(err)
		}

		create := []string{"create", "--dry-run=server", "-f", "-"}
		kubectl(t, hub, toJSON(t, pod), create...)
		checked++

		// The same Pod with one right more is refused, so the check above means something.
		if err := unstructured.SetNestedField(pod.Object, true, "spec", "hostNetwork"); err != nil {
			t.Fatal(err)
		}

		_, _, err = hub.KubectlInput(t.Context(), strings.NewReader(toJSON(t, pod)), create...)
		if err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted`) {
			t.Errorf("%s: a Pod on the host's network: %v", identity(object), err)
		}
	}

	if checked < 2 {
		t.Errorf("only %d Pods were checked", checked)
	}
}

func toJSON(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()

	content, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}

	return string(content)
}
