package migrate

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// As long as the old operator runs, the deletion of an object of a kind that only it has takes what the object renders out
// of the workload cluster, its network even. So the refusal says first to stop the operator, and what has to be kept.
func TestOtherKindsAreDeletedAfterTheStop(t *testing.T) {
	for kind, keeps := range map[string][]string{
		"OmniOther":        nil,
		"OmniClusterAddon": {"one-addon-manifest", "spec.kubernetes.manifests"},
		"OmniCilium":       {"one-cilium-manifest", "spec.kubernetes.manifests", "disable-default-cni-for-cilium", "spec.patches"},
	} {
		refusals := Convert(stored(t, kind, "", `{}`)).Refusals
		if len(refusals) != 1 {
			t.Fatalf("%s: %v", kind, refusals)
		}

		text := refusals[0].Text

		stop, remove := strings.Index(text, "stop the old operator (scale its Deployment to 0)"), strings.Index(text, "delete the object")
		if stop < 0 || remove < stop || !strings.Contains(text, "while the old operator runs") {
			t.Errorf("%s does not say that the operator is stopped first, and why: %s", kind, text)
		}

		for _, want := range keeps {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not name %s: %s", kind, want, text)
			}
		}
	}
}

// A run goes on with an operator that its user has stopped, once the objects of other kinds are gone: their definitions are
// no reason to refuse.
func TestRunAfterTheStopForOtherKinds(t *testing.T) {
	operator := parsed(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: old, labels: {app.kubernetes.io/name: omni-cluster-operator, control-plane: controller-manager}}
spec: {replicas: 0, selector: {matchLabels: {control-plane: controller-manager}}}`)
	writtenBy(operator, "replicas", "kubectl-scale")

	for _, addon := range []*unstructured.Unstructured{stored(t, "OmniClusterAddon", "", `{}`), nil} {
		objects := []*unstructured.Unstructured{operator, parsed(t, `
apiVersion: v1
kind: Namespace
metadata: {name: kube-system, uid: hub}`), parsed(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: omniclusteraddons.omni.texashpc.com, uid: d1}
spec: {group: omni.texashpc.com, names: {kind: OmniClusterAddon, plural: omniclusteraddons}, versions: [{name: v1alpha1, served: true}]}`)}
		if addon != nil {
			objects = append(objects, addon)
		}

		m := migrationOn(fakeHub(objects...))
		m.hub.metadata, m.backup = noSecrets(), nil

		if err := m.check(t.Context()); (err != nil) != (addon != nil) {
			t.Errorf("with %v: %v", addon, err)
		}
	}
}

// Who deleted objects of other kinds for the migration, and goes back, has to apply them first: without them the old operator
// takes what they had rendered out of the workload clusters.
func TestBackToTheOldOperatorWithOtherKinds(t *testing.T) {
	operator := parsed(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: old, labels: {app.kubernetes.io/name: omni-cluster-operator, control-plane: controller-manager}}
spec: {selector: {matchLabels: {control-plane: controller-manager}}}`)
	before := operator.DeepCopy()

	writtenBy(operator, "replicas", fieldManager)

	if err := unstructured.SetNestedField(operator.Object, int64(0), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}

	definition := func(kind, plural string) *unstructured.Unstructured {
		return parsed(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: `+plural+`.omni.texashpc.com, uid: `+plural+`}
spec: {group: omni.texashpc.com, names: {kind: `+kind+`, plural: `+plural+`}, versions: [{name: v1alpha1, served: true}]}`)
	}

	for _, other := range []bool{true, false} {
		definitions := []*unstructured.Unstructured{definition("OmniCluster", "omniclusters")}
		if other {
			definitions = append(definitions, definition("OmniClusterAddon", "omniclusteraddons"))
		}

		m := migrationOn(fakeHub(append(definitions, operator, parsed(t, `
apiVersion: v1
kind: Namespace
metadata: {name: kube-system, uid: hub}`))...))
		m.hub.metadata, m.options.Backup = noSecrets(), filepath.Join(t.TempDir(), "backup.json")

		plan, err := m.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		if text := strings.Join(plan.Problems, "\n"); !strings.Contains(text, "scale it to what it had") || strings.Contains(text, "apply the saved OmniClusterAddon objects first") != other {
			t.Errorf("with another kind: %t: the plan says %s", other, text)
		}

		m.backup = &backup{Format: backupFormat, HubID: "hub", Deployments: []unstructured.Unstructured{*before}}
		if err := m.backup.write(t.Context(), m.options.Backup); err != nil {
			t.Fatal(err)
		}

		if err := m.Undo(t.Context()); err != nil {
			t.Fatal(err)
		}

		said := fmt.Sprint(m.options.Progress)
		if warned := strings.Index(said, "apply the saved OmniClusterAddon objects first"); (warned >= 0) != other || warned > strings.Index(said, "has 1 replicas") {
			t.Errorf("with another kind: %t: undo says %s", other, said)
		}
	}
}
