package migrate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The chart of the old operator can own its Namespace, and its kustomization does: uninstalling it deletes the Namespace with
// Omni's key. plan says so, and so does run when it asks for that.
func TestNamespaceOfTheOldInstallation(t *testing.T) {
	const byHelm = `, annotations: {meta.helm.sh/release-name: fleet, meta.helm.sh/release-namespace: old}`

	for name, test := range map[string]struct {
		deployment, namespace string
		owned                 bool
	}{
		"made by the user":          {byHelm, `, labels: {kubernetes.io/metadata.name: old}`, false},
		"of the release":            {byHelm, byHelm, true},
		"of another release":        {byHelm, `, annotations: {meta.helm.sh/release-name: namespaces, meta.helm.sh/release-namespace: old}`, false},
		"applied without Helm":      {``, `, labels: {app.kubernetes.io/name: omni, helm.sh/chart: omni-cluster-operator-0.4.0}`, true},
		"of another chart":          {``, `, labels: {helm.sh/chart: namespaces-0.4.0}`, false},
		"of the kustomization":      {``, `, labels: {control-plane: controller-manager, app.kubernetes.io/name: omni-cluster-operator}`, true},
		"of our kustomization":      {``, `, labels: {app.kubernetes.io/part-of: omni-cluster-operator, app.kubernetes.io/name: omni-cluster-operator}`, false},
		"of some other kubebuilder": {``, `, labels: {control-plane: controller-manager}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := parsed(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: old`+test.deployment+`}
spec: {selector: {matchLabels: {control-plane: controller-manager}}}`)
			m := migrationOn(fakeHub(deployment, parsed(t, `
apiVersion: v1
kind: Namespace
metadata: {name: old`+test.namespace+`}`), parsed(t, `
apiVersion: v1
kind: Namespace
metadata: {name: kube-system, uid: hub}`)))
			m.hub.metadata, m.options.Deployments = noSecrets(), []string{"old/manager"}

			plan, err := m.Plan(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			m.backup.Deployments = []unstructured.Unstructured{*deployment}

			asked := m.waitForAPI(t.Context())
			if asked == nil {
				t.Fatal("the API is there")
			}

			for _, text := range []string{strings.Join(plan.Notes, "\n"), asked.Error()} {
				if warned := strings.Contains(text, "Namespace old is part of the old installation"); warned != test.owned {
					t.Errorf("warned: %t\n%s", warned, text)
				}

				if test.owned && !strings.Contains(text, "\"Uninstall the old operator\" in docs/how-to/migrate.md") {
					t.Errorf("there is no remedy in\n%s", text)
				}
			}
		})
	}
}
