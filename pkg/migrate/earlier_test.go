package migrate

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What an earlier run has changed is no state of the user's: without the backup of that run, the policies that let go and the
// missing replicas would be saved, planned and moved as if they were.
func TestChangedByAnEarlierRun(t *testing.T) {
	orphaned := func(manager string) *unstructured.Unstructured {
		made := stored(t, "OmniCluster", "", cluster+", deletePolicy: {orphan: true}}")
		made.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:deletePolicy":{"f:orphan":{}}}}`)}})

		return made
	}
	operator := func(replicas int64, manager string) *unstructured.Unstructured {
		made := parsed(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: old, labels: {app.kubernetes.io/name: omni-cluster-operator, control-plane: controller-manager}}
spec: {selector: {matchLabels: {control-plane: controller-manager}}}`)
		if err := unstructured.SetNestedField(made.Object, replicas, "spec", "replicas"); err != nil {
			t.Fatal(err)
		}

		writtenBy(made, "replicas", manager)

		return made
	}

	again := orphaned(fieldManager)
	again.SetUID("another")

	for name, test := range map[string]struct {
		object, deployment *unstructured.Unstructured
		backup             *backup
		refused            string
	}{
		"a policy, without a backup":          {orphaned(fieldManager), operator(1, "helm"), nil, "OmniCluster team-a/one"},
		"a policy, with the backup":           {orphaned(fieldManager), operator(1, "helm"), backupOf(&state{Objects: []unstructured.Unstructured{*orphaned("kubectl")}}, metav1.Now().Time), ""},
		"a policy, with the backup of others": {orphaned(fieldManager), operator(1, "helm"), backupOf(&state{Objects: []unstructured.Unstructured{*again}}, metav1.Now().Time), "OmniCluster team-a/one"},
		"a policy that its user set":          {orphaned("kubectl"), operator(1, "helm"), nil, ""},
		"a Deployment, without a backup":      {orphaned("kubectl"), operator(0, fieldManager), nil, "Deployment old/manager"},
		"a Deployment, with the backup":       {orphaned("kubectl"), operator(0, fieldManager), &backup{Deployments: []unstructured.Unstructured{*operator(1, "helm")}}, ""},
		"a Deployment that undo put back":     {orphaned("kubectl"), operator(2, fieldManager), nil, ""},
		"a Deployment that its user stopped":  {orphaned("kubectl"), operator(0, "kubectl-scale"), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := migrationOn(fakeHub(test.object, test.deployment, parsed(t, `
apiVersion: v1
kind: Namespace
metadata: {name: kube-system, uid: hub}`), parsed(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: omniclusters.omni.texashpc.com, uid: d1}
spec: {group: omni.texashpc.com, names: {kind: OmniCluster, plural: omniclusters}, versions: [{name: v1alpha1, served: true}]}`)))
			m.hub.metadata = noSecrets()
			m.backup = test.backup

			err := m.check(t.Context())
			if (err != nil) != (test.refused != "") {
				t.Fatalf("check: %v", err)
			}

			if test.backup != nil {
				return
			}

			plan, err := m.Plan(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			var out bytes.Buffer
			if err := plan.Print(&out); err != nil {
				t.Fatal(err)
			}

			if said := strings.Contains(out.String(), "give its backup file"); said != plan.Refused() || said != (test.refused != "") || !strings.Contains(out.String(), test.refused) {
				t.Errorf("refused: %t, and the plan says:\n%s", plan.Refused(), out.String())
			}

			text, err := plan.Manifests()
			if err != nil {
				t.Fatal(err)
			}

			if ours := test.object.GetManagedFields()[0].Manager == fieldManager; bytes.Contains(text, []byte("orphan: true")) == ours {
				t.Errorf("for Git:\n%s", text)
			}
		})
	}
}
