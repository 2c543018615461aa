package deploy

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// connection is the manifest of a connection to the simulated Omni and of its key, to be followed by others.
func connection(t *testing.T, sim *omnisim.Server) string {
	t.Helper()

	key, err := sim.CreateServiceAccount("operator", omnisim.RoleOperator, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata:
  name: omni-service-account
  annotations: {omni.texashpc.com/allowed-endpoints: %q}
stringData: {serviceAccountKey: %q}
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniConnection
metadata: {name: omni}
spec:
  endpoint: %s
  caBundle: %s
  auth: {serviceAccountSecretRef: {name: omni-service-account}}
---
`, sim.Endpoint(), key, sim.Endpoint(), encoded(sim.CAPEM()))
}

// useAPI makes a connection and a cluster in a namespace through kube-apiserver, until the controller has taken them
// to an Omni, and deletes them again.
func useAPI(t *testing.T, r *running, in string) {
	t.Helper()

	sim, err := omnisim.Start(omnisim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()

	kubectl(t, r.hub, connection(t, sim)+`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniCluster
metadata: {name: cluster-01, annotations: {omni.texashpc.com/confirm-deletion: cluster-01}}
spec:
  connectionRef: {name: omni}
  kubernetes: {version: v1.35.1}
  talos: {version: v1.13.3}
  suspend: true
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniControlPlane
metadata: {name: cluster-01}
spec:
  clusterRef: {name: cluster-01}
  machines: [1c3f5d1e-0d59-4d0c-9f0a-6a5c0f6f1a01]
`, "apply", "-n", in, "-f", "-")

	eventually(t, r.hub, "the connection in "+in, func(stdout string) error {
		if stdout != "True" {
			return fmt.Errorf("Ready is %q", stdout)
		}

		return nil
	}, "get", "omniconnection", "omni", "-n", in, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)

	eventually(t, r.hub, "the plan in "+in, func(stdout string) error {
		if stdout == "" {
			return errors.New("there is no plan")
		}

		return nil
	}, "get", "omnicluster", "cluster-01", "-n", in, "-o", `jsonpath={.status.plan}`)

	t.Cleanup(func() {
		if t.Failed() {
			t.Log(r.logs())
		}
	})
}
