package e2e

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// No secret is ever shown: canaries in the key and in a patch from a Secret, then a search
// through everything a user or operator can read.
func TestSecretsAreNeverShown(t *testing.T) {
	const canary = "c4n4ry-0f-4-s3cr3t"

	f := newFleet(t)
	f.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: patch}\nstringData:\n  patch: '{machine: {sysctls: {a: " + canary + "}}}'")
	f.cluster("canary", "  patches: [{name: p, valueFrom: {secretKeyRef: {name: patch, key: patch}}}]")
	f.apply(secretManifest("broken", canary+"\n"+f.key), connectionManifest("broken", f.omni.Endpoint(), "broken", string(f.omni.CAPEM())))
	f.waitCondition("oconn", "broken", v1alpha1.ConditionReady, metav1.ConditionFalse, "")
	// A patch that Omni refuses: the error must not quote it.
	f.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: patch}\nstringData:\n  patch: '{machine: {" + canary + ": 1}}'")
	f.waitCondition("ocl", "canary", v1alpha1.ConditionReady, metav1.ConditionFalse, "")

	metrics, err := stack.Controller.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	places := map[string]string{
		"objects":  f.run("get", "omni", "-o", "yaml"),
		"tables":   f.run("get", "omni", "-o", "wide"),
		"events":   f.run("get", "events", "-o", "yaml"),
		"template": f.run("get", "--raw", "/apis/omni.texashpc.com/v1alpha1/namespaces/"+f.name+"/omniclusters/canary/template"),
		"metrics":  metrics,
	}

	for _, path := range []string{stack.Controller.LogPath(), stack.OmniAPIServer.LogPath()} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		places[path] = string(data)
	}

	for place, text := range places {
		for _, secret := range []string{canary, f.key[:40]} {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s shows a secret: ...%s", place, text[max(0, i-200):i])
			}
		}
	}
}
