package migrate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// As long as the old operator runs, the deletion of an object of a kind that only it has takes what the object renders out
// of the workload cluster, its network even. So the refusal says first to stop the operator.
func TestOtherKindsAreDeletedAfterTheStop(t *testing.T) {
	for _, kind := range []string{"OmniOther", "OmniClusterAddon", "OmniCilium"} {
		refusals := Convert(stored(t, kind, "", `{}`)).Refusals
		if len(refusals) != 1 {
			t.Fatalf("%s: %v", kind, refusals)
		}

		text := refusals[0].Text

		stop, remove := strings.Index(text, "stop the old operator (scale its Deployment to 0)"), strings.Index(text, "delete it")
		if stop < 0 || remove < stop || !strings.Contains(text, "While the old operator runs") {
			t.Errorf("%s does not say that the operator is stopped first, and why: %s", kind, text)
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
