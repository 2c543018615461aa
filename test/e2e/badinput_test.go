package e2e

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Every bad input gets an error that names the field and the remedy, and nothing is stored.
func TestBadInputIsRefusedAtTheField(t *testing.T) {
	t.Parallel()

	s := newSpace(t)

	for name, tc := range map[string]struct {
		manifest string
		texts    []string
	}{
		"unknown field": {
			clusterManifest("c", "  kubernetesVersion: v1.35.1"),
			[]string{`unknown field "spec.kubernetesVersion"`},
		},
		"wrong type": {
			clusterManifest("c", "  suspend: maybe"),
			[]string{"suspend"},
		},
		"endpoint without host": {
			connectionManifest("c", "https://", "key", testCA),
			[]string{"spec.endpoint", "host"},
		},
		"endpoint with user info": {
			connectionManifest("c", "https://user:hunter2@omni.example.com", "key", testCA),
			[]string{"spec.endpoint"},
		},
		"CA bundle that is no certificate": {
			connectionManifest("c", "https://omni.example.com", "key", "not a certificate"),
			[]string{"spec.caBundle"},
		},
		"version without v": {
			strings.Replace(clusterManifest("c"), "v1.35.1", "1.35.1", 1),
			[]string{"spec.kubernetes.version", "v1.35.1"},
		},
		"name that Omni does not accept": {
			clusterManifest("has.dots"),
			[]string{"spec.clusterName", "set"},
		},
		"orphan and destroyMachines": {
			clusterManifest("c", "  deletePolicy: {orphan: true, destroyMachines: true}"),
			[]string{"spec.deletePolicy"},
		},
		"patch that Talos does not understand": {
			clusterManifest("c", "  patches:\n  - name: p\n    inline: {machine: {nonsense: 1}}"),
			[]string{"spec.patches[0].inline"},
		},
		"control plane without machines": {
			controlPlaneManifest("c", "c"),
			[]string{"spec"},
		},
		"worker set named control-planes": {
			workersManifest("control-planes", "c", "machines: []"),
			[]string{"spec.workerSetName"},
		},
		"machine that is no UUID": {
			machineManifest("m", "c"),
			[]string{"spec.machineID", "UUID"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &space{t: t, name: s.name}
			s.refused(tc.manifest, tc.texts...)
		})
	}

	if out := s.run("get", "omni", "-o", "name"); strings.TrimSpace(out) != "" && !strings.Contains(out, "No resources found") {
		t.Errorf("something was stored:\n%s", out)
	}
}

// A patch of a kind that this build's Talos does not know is stored, with a warning; Omni decides. Here, Omni does not know it
// either, and the condition says that these are Omni's words. A known kind that is wrong is refused.
func TestUnknownTalosKindIsForOmniToDecide(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	unknown := clusterManifest("c", "  patches:\n  - name: p\n    inline: {apiVersion: v1alpha1, kind: NoSuchConfig}")

	if out, err := f.tryInput(unknown, "apply", "-f", "-"); err != nil ||
		!strings.Contains(out, "Warning: spec.patches[0].inline: Omni decides about v1alpha1 NoSuchConfig: this build does not know it") {
		t.Fatalf("%s %v", out, err)
	}

	f.kubectlApply(controlPlaneManifest("cp", "c", f.machines[0]))
	f.waitCondition("ocl", "c", v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonRefused, "Omni refuses this", "NoSuchConfig", "not registered")
	f.refused(strings.Replace(unknown, "kind: NoSuchConfig", "kind: SysctlConfig, noSuchField: 1", 1), "spec.patches[0].inline", "noSuchField")
	f.kubectlApply(clusterManifest("c"))
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

// kubectl expands YAML aliases by itself; other clients send them, and kube-apiserver passes them on.
func TestAliasesAreRefused(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	path := "/apis/omni.texashpc.com/v1alpha1/namespaces/" + s.name + "/omniclusters/c"
	manifest := strings.Replace(clusterManifest("c"), "metadata:", "metadata:\n  annotations: {a: &a x, b: *a}", 1)

	result := s.stack().Client().CoreV1().RESTClient().Patch(types.ApplyYAMLPatchType).AbsPath(path).Param("fieldManager", "e2e").
		Body([]byte(manifest)).Do(t.Context())
	if err := result.Error(); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "write each value out where it belongs") {
		t.Errorf("got %v", err)
	}

	s.kubectlApply(manifest)
}

func TestObjectsThatAreTooLargeAreRefused(t *testing.T) {
	t.Parallel()

	s := newSpace(t)

	large := clusterManifest("c", "  annotations:\n    note: "+strings.Repeat("a", 2<<20))
	if out, err := s.tryInput(large, "create", "-f", "-"); err == nil || !strings.Contains(err.Error(), "large") {
		t.Errorf("2 MiB object: %s %v", out, err)
	}

	block := clusterManifest("c", "  patches:\n  - name: p\n    inline: {machine: {env: {A: "+strings.Repeat("a", 257<<10)+"}}}")
	if out, err := s.tryInput(block, "create", "-f", "-"); err == nil || !strings.Contains(err.Error(), "spec.patches[0].inline") {
		t.Errorf("257 KiB block: %.300s %.300v", out, err)
	}
}

func TestImmutableFieldsSayWhatToDo(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	s.kubectlApply(clusterManifest("c"))

	s.refused(strings.Replace(clusterManifest("c"), "name: omni", "name: other", 1), "spec.connectionRef.name", "immutable")
	s.refused(clusterManifest("c", "  clusterName: other"), "spec.clusterName", "immutable")
	// The effective name stays the same: this is no change.
	s.kubectlApply(clusterManifest("c", "  clusterName: c"))
}

func TestDeletionGuard(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	s.kubectlApply(clusterManifest("guarded", "  suspend: true", "  deletePolicy: {requireConfirmation: true, orphan: true}"))

	for _, args := range [][]string{
		{"delete", "ocl", "guarded", "--wait=false"},
		{"delete", "ocl", "guarded", "--dry-run=server"},
		{"delete", "ocl", "--all", "--wait=false"},
	} {
		if out, err := s.try(args...); err == nil || !strings.Contains(err.Error(), "confirm-deletion") {
			t.Errorf("%v: %s %v", args, out, err)
		}
	}

	s.run("annotate", "ocl", "guarded", "omni.texashpc.com/confirm-deletion=guarded")
	s.run("delete", "ocl", "guarded", "--wait=false")
	s.waitGone("ocl", "guarded")
}
