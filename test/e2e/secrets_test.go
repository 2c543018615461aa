package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// No secret is ever shown: canaries in the key and in a patch from a Secret, then a search
// through everything a user or operator can read.
func TestSecretsAreNeverShown(t *testing.T) {
	t.Parallel()

	const canary = "c4n4ry-0f-4-s3cr3t"

	f := newFleet(t)
	f.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: patch}\nstringData:\n  patch: '{machine: {sysctls: {a: " + canary + "}}}'")
	f.cluster("canary", "  patches: [{name: p, valueFrom: {secretKeyRef: {name: patch, key: patch}}}]")
	f.apply(secretManifest("broken", canary+"\n"+f.key, f.omni.Endpoint()), connectionManifest("broken", f.omni.Endpoint(), "broken", string(f.omni.CAPEM())))
	f.waitCondition("oconn", "broken", v1alpha1.ConditionReady, metav1.ConditionFalse, "")
	// A patch that Omni refuses: the error must not quote it.
	f.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: patch}\nstringData:\n  patch: '{machine: {" + canary + ": 1}}'")
	f.waitCondition("ocl", "canary", v1alpha1.ConditionReady, metav1.ConditionFalse, "")

	template := f.run("get", "--raw", "/apis/omni.texashpc.com/v1alpha1/namespaces/"+f.name+"/omniclusters/canary/template")
	if strings.Contains(template, canary) || strings.Contains(template, f.key[:40]) {
		t.Error("the template shows a secret")
	}

	f.showNowhere(canary, f.key[:40])
}
