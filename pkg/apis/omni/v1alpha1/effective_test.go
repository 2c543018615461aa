package v1alpha1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The names that count in Omni, in Helm and in the hub: what the spec says, else the object's own.
func TestEffectiveNames(t *testing.T) {
	cluster, workers, machine, release := &OmniCluster{}, &OmniWorkers{}, &OmniMachine{}, &OmniHelmRelease{}
	cluster.Name, workers.Name, machine.Name, release.Name = "object", "object", "4c4c4544-0039-4a10-8056-b3c04f4c3132", "object"

	for name, names := range map[string][2]string{
		"cluster": {cluster.EffectiveClusterName(), "object"}, "workers": {workers.EffectiveWorkerSetName(), "object"},
		"machine": {machine.EffectiveMachineID(), machine.Name}, "release": {release.EffectiveReleaseName(), "object"},
	} {
		if names[0] != names[1] {
			t.Errorf("%s by its object: %q", name, names[0])
		}
	}

	cluster.Spec.ClusterName, workers.Spec.WorkerSetName, release.Spec.ReleaseName = "spec", "spec", "spec"
	machine.Spec.MachineID = "4C4C4544-0039-4A10-8056-B3C04F4C3133"

	for name, names := range map[string][2]string{
		"cluster": {cluster.EffectiveClusterName(), "spec"}, "workers": {workers.EffectiveWorkerSetName(), "spec"},
		"machine, as Omni writes it": {machine.EffectiveMachineID(), "4c4c4544-0039-4a10-8056-b3c04f4c3133"}, "release": {release.EffectiveReleaseName(), "spec"},
	} {
		if names[0] != names[1] {
			t.Errorf("%s by its spec: %q", name, names[0])
		}
	}

	if machine.Spec.MachineID = "no-uuid"; machine.EffectiveMachineID() != "no-uuid" {
		t.Errorf("a machine without a UUID: %q", machine.EffectiveMachineID())
	}
}

// Which Secret an export writes, and which it has written: that one is deleted with it.
func TestTargetsOfAnExport(t *testing.T) {
	for name, test := range map[string]struct {
		spec               TargetSecretReference
		status             *TargetSecretReference
		effective, written types.NamespacedName
	}{
		"nothing is written yet": {
			TargetSecretReference{Name: "access"}, nil, types.NamespacedName{Namespace: "apps", Name: "access"}, types.NamespacedName{},
		},
		"in its own namespace": {
			TargetSecretReference{Name: "access"}, &TargetSecretReference{Name: "access"},
			types.NamespacedName{Namespace: "apps", Name: "access"}, types.NamespacedName{Namespace: "apps", Name: "access"},
		},
		"it moves": {
			TargetSecretReference{Namespace: "flux-system", Name: "new"}, &TargetSecretReference{Namespace: "argocd", Name: "old"},
			types.NamespacedName{Namespace: "flux-system", Name: "new"}, types.NamespacedName{Namespace: "argocd", Name: "old"},
		},
		"a status without a name": {
			TargetSecretReference{Name: "access"}, &TargetSecretReference{Namespace: "argocd"},
			types.NamespacedName{Namespace: "apps", Name: "access"}, types.NamespacedName{},
		},
	} {
		export := &OmniKubeconfigExport{}
		export.Namespace, export.Spec.TargetSecretRef, export.Status.TargetSecretRef = "apps", test.spec, test.status

		if got := export.EffectiveTarget(); got != test.effective {
			t.Errorf("%s: %v", name, got)
		}

		if got := export.WrittenTarget(); got != test.written {
			t.Errorf("%s: written: %v", name, got)
		}
	}
}

// The newer name of the field counts, also if it says no.
func TestRollsBack(t *testing.T) {
	for name, test := range map[string]struct {
		rollback, atomic *bool
		want             bool
	}{
		"neither":      {nil, nil, false},
		"the new name": {new(true), nil, true},
		"the old name": {nil, new(true), true},
		"an old no":    {nil, new(false), false},
		"a new no":     {new(false), new(true), false},
		"a new yes":    {new(true), new(false), true},
	} {
		if got := (&OmniHelmReleaseSpec{RollbackOnFailure: test.rollback, Atomic: test.atomic}).RollsBack(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestIsDeletionConfirmed(t *testing.T) {
	for name, test := range map[string]struct {
		name, value string
		want        bool
	}{
		"the name":                 {"demo", "demo", true},
		"another name":             {"demo", "other", false},
		"nothing":                  {"demo", "", false},
		"an object without a name": {"", "", false}, // generateName
	} {
		object := &OmniCluster{ObjectMeta: metav1.ObjectMeta{Name: test.name, Annotations: map[string]string{AnnotationConfirmDeletion: test.value}}}
		if got := IsDeletionConfirmed(object); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
