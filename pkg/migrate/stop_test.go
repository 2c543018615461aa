package migrate

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Pod that has ended acts no more, and no ReplicaSet removes one that was evicted. All others count, also those that are
// going or whose node says nothing.
func TestPodsThatRun(t *testing.T) {
	for phase, runs := range map[string]bool{"": true, "Pending": true, "Running": true, "Unknown": true, "Succeeded": false, "Failed": false} {
		pod := parsed(t, `
apiVersion: v1
kind: Pod
metadata: {name: manager-1, namespace: old, labels: {control-plane: controller-manager}}
status: {phase: `+phase+`}`)
		deployment := parsed(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: old}
spec: {selector: {matchLabels: {control-plane: controller-manager}}}`)

		pods, err := migrationOn(fakeHub(pod)).podsOf(t.Context(), deployment)
		if err != nil || (len(pods) > 0) != runs {
			t.Errorf("phase %q: %v, %v", phase, pods, err)
		}
	}
}

// The old operator is stopped if all that is left of it is a Pod that was evicted.
func TestStoppedWithAnEvictedPod(t *testing.T) {
	deployment := parsed(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: old, labels: {app.kubernetes.io/name: omni-cluster-operator, control-plane: controller-manager}}
spec: {selector: {matchLabels: {control-plane: controller-manager}}}`)
	if err := unstructured.SetNestedField(deployment.Object, int64(0), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}

	m := migrationOn(fakeHub(deployment, parsed(t, `
apiVersion: v1
kind: Pod
metadata: {name: manager-1, namespace: old, labels: {control-plane: controller-manager}}
status: {phase: Failed, reason: Evicted}`), parsed(t, `
apiVersion: v1
kind: Namespace
metadata: {name: kube-system, uid: hub}`)))
	m.hub.metadata = noSecrets()

	if running, err := m.running(t.Context()); err != nil || running != "" {
		t.Errorf("runs: %q, %v", running, err)
	}
}

// The chart cuts the name of its Service at 63 characters, and a dash that is last then, but not that of its Deployment.
func TestWebhookServiceIsCut(t *testing.T) {
	const rest = "a-fleet-of-clusters-in-several-regions-of-the-world-and-more-12" // 63 characters

	for length, service := range map[int]string{
		10: rest[:10] + "-webhook-service",
		46: rest[:46] + "-webhook-service",
		47: rest[:47] + "-webhook-service",
		48: rest[:48] + "-webhook-servic",
		54: rest[:54] + "-webhook",
		55: rest[:55] + "-webhook",
		62: rest[:62],
		63: rest,
	} {
		s := &state{Deployments: []unstructured.Unstructured{*parsed(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: `+rest[:length]+`-controller-manager, namespace: old}`)}}

		for called, theirs := range map[string]bool{service: true, service[:len(service)-2]: false, service + "x": false} {
			webhook := parsed(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: `+rest[:length]+`-validating-webhook-configuration}
webhooks: [{name: a, clientConfig: {service: {name: `+called+`, namespace: old}}, rules: [{apiGroups: [omni.texashpc.com]}]}]`)
			if s.serves(webhook) != theirs {
				t.Errorf("a name of %d characters: %s is the old operator's: %t", length, called, !theirs)
			}
		}
	}
}

// With nameOverride neither the label nor the name of the webhook configuration says whose it is: its Service does.
func TestWebhookOfANamedDeployment(t *testing.T) {
	deployment := parsed(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: fleet-omni-controller-manager, namespace: old, labels: {app.kubernetes.io/name: omni, control-plane: controller-manager}}`)

	for service, theirs := range map[string]bool{
		"{name: fleet-omni-webhook-service, namespace: old}":   true,
		"{name: fleet-omni-webhook-service, namespace: other}": false,
		"{name: policies, namespace: old}":                     false,
	} {
		system := parsed(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system, uid: hub}")
		webhook := parsed(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: fleet-omni-validating-webhook-configuration}
webhooks: [{name: a, clientConfig: {service: `+service+`}, rules: [{apiGroups: [omni.texashpc.com]}]}]`)

		s := &state{Deployments: []unstructured.Unstructured{*deployment}}
		if err := migrationOn(fakeHub(system, webhook)).hub.lookWebhooks(t.Context(), s); err != nil {
			t.Fatal(err)
		}

		if len(s.Webhooks) == 1 != theirs || len(s.OtherWebhooks) == 0 != theirs {
			t.Errorf("%s: theirs %d, others %q", service, len(s.Webhooks), s.OtherWebhooks)
		}
	}
}
