//go:build realomni

package realomni

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/state"

	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

const (
	namespace  = "fleet"
	eventually = time.Minute
	cluster    = "scenario"
)

// scenario is a stack whose connection leads to the real Omni, and a client of our own beside it.
type scenario struct {
	*testing.T

	stack *env.Stack
	other state.State
}

func TestClusterScenario(t *testing.T) {
	s := &scenario{T: t}
	s.start()

	s.Log("connection")
	s.apply(connectionManifests(t))
	s.kubectl("wait", "oconn/omni", "--for=condition=Ready", "--timeout=60s")

	s.Log("sync")
	s.apply(clusterManifests)
	s.kubectl("wait", "ocl/"+cluster, "--for=condition=Synced", "--timeout=60s")
	s.until("cluster with both sets", func(view omnisim.ClusterView) bool {
		return view.Exists && view.KubernetesVersion == "1.35.1" && view.Machines[cluster+"-control-planes"] == 1 && view.Machines[cluster+"-pool"] == 2
	})

	s.Log("change")
	s.kubectl("patch", "ow", "pool", "--type=json", "-p", `[{"op":"add","path":"/spec/machines/-","value":"27c16241-96bf-4f17-9579-000000000003"}]`)
	s.until("third machine", func(view omnisim.ClusterView) bool { return view.Machines[cluster+"-pool"] == 3 })

	s.Log("suspend: a plan, and no change")
	s.kubectl("patch", "ocl", cluster, "--type=merge", "-p", `{"spec":{"suspend":true,"labels":{"staged":"yes"}}}`)
	s.kubectl("wait", "ocl/"+cluster, "--for=condition=Suspended", "--timeout=60s")
	s.kubectl("wait", "ocl/"+cluster, "--for=jsonpath={.status.plan.updates}=1", "--timeout=60s")

	if view := s.view(); view.Labels["staged"] != "" {
		t.Errorf("the suspended edit reached Omni: %v", view.Labels)
	}

	s.kubectl("patch", "ocl", cluster, "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	s.until("staged label", func(view omnisim.ClusterView) bool { return view.Labels["staged"] == "yes" })

	s.Log("drift made with another client is corrected")

	if err := omnisim.AnnotateCluster(t.Context(), s.other, cluster, "drift", "yes"); err != nil {
		t.Fatal(err)
	}

	s.until("drift to be gone", func(view omnisim.ClusterView) bool { _, drift := view.Annotations["drift"]; return !drift })

	s.Log("a lock set in Omni is respected")

	if err := omnisim.AnnotateCluster(t.Context(), s.other, cluster, "omni.sidero.dev/cluster-locked", ""); err != nil {
		t.Fatal(err)
	}

	s.kubectl("wait", "ocl/"+cluster, "--for=condition=Stalled", "--timeout=60s")

	if err := omnisim.RemoveAnnotation(t.Context(), s.other, cluster, "omni.sidero.dev/cluster-locked"); err != nil {
		t.Fatal(err)
	}

	s.kubectl("wait", "ocl/"+cluster, "--for=condition=Synced", "--timeout=60s")

	s.Log("delete")
	s.kubectl("delete", "ocl", cluster, "--timeout=60s")

	if view := s.view(); view.Exists {
		t.Errorf("Omni still has %+v", view)
	}

	s.kubectl("delete", "oconn", "omni", "--timeout=60s")
}

func (s *scenario) start() {
	ca, err := os.ReadFile(os.Getenv("OMNI_CA_FILE"))
	if err != nil {
		s.Fatal(err)
	}

	client, err := omnisim.Connect(os.Getenv("OMNI_ENDPOINT"), os.Getenv("OMNI_SERVICE_ACCOUNT_KEY"), ca)
	if err != nil {
		s.Fatal(err)
	}

	s.Cleanup(func() { _ = client.Close() })
	s.other = client.Omni().State()

	s.stack, err = env.StartStack(s.Context(), env.StackOptions{
		Hub:        env.Options{Progress: s.Output()},
		Controller: env.ControllerOptions{Namespace: namespace, DestroySettleTime: time.Second},
	})
	if err != nil {
		s.Fatal(err)
	}

	s.Cleanup(func() {
		if err := s.stack.Stop(); err != nil {
			s.Error(err)
		}
	})
}

func (s *scenario) apply(manifests string) {
	s.Helper()

	if _, _, err := s.stack.KubectlInput(s.Context(), strings.NewReader(manifests), "-n", namespace, "apply", "-f", "-"); err != nil {
		s.Fatal(err)
	}
}

func (s *scenario) kubectl(args ...string) {
	s.Helper()

	if _, _, err := s.stack.Kubectl(s.Context(), append([]string{"-n", namespace}, args...)...); err != nil {
		status, _, _ := s.stack.Kubectl(context.WithoutCancel(s.Context()), "-n", namespace, "get", "omni", "-o", "yaml")
		s.Fatalf("%v\n%s", err, status)
	}
}

func (s *scenario) view() omnisim.ClusterView {
	s.Helper()

	view, err := omnisim.ReadCluster(s.Context(), s.other, cluster)
	if err != nil {
		s.Fatal(err)
	}

	return view
}

func (s *scenario) until(what string, check func(omnisim.ClusterView) bool) {
	s.Helper()

	if err := env.Eventually(s.Context(), eventually, what, func(context.Context) error {
		if view := s.view(); !check(view) {
			return fmt.Errorf("Omni has %+v", view)
		}

		return nil
	}); err != nil {
		s.Fatal(err)
	}
}

func connectionManifests(t *testing.T) string {
	t.Helper()

	ca, err := os.ReadFile(os.Getenv("OMNI_CA_FILE"))
	if err != nil {
		t.Fatal(err)
	}

	return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: key, annotations: {omni.texashpc.com/allowed-endpoints: %q}}
stringData: {serviceAccountKey: %q}
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniConnection
metadata: {name: omni}
spec:
  endpoint: %s
  caBundle: %s
  auth: {serviceAccountSecretRef: {name: key}}
`, os.Getenv("OMNI_ENDPOINT"), os.Getenv("OMNI_SERVICE_ACCOUNT_KEY"), os.Getenv("OMNI_ENDPOINT"), base64.StdEncoding.EncodeToString(ca))
}

const clusterManifests = `apiVersion: omni.texashpc.com/v1alpha1
kind: OmniCluster
metadata: {name: scenario}
spec:
  connectionRef: {name: omni}
  kubernetes: {version: v1.35.1}
  talos: {version: v1.13.3}
  patches:
  - name: sysctls
    inline: {machine: {sysctls: {net.core.somaxconn: "1048576"}}}
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniControlPlane
metadata: {name: cp}
spec:
  clusterRef: {name: scenario}
  machines: [27c16241-96bf-4f17-9579-000000000000]
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniWorkers
metadata: {name: pool}
spec:
  clusterRef: {name: scenario}
  machines: [27c16241-96bf-4f17-9579-000000000001, 27c16241-96bf-4f17-9579-000000000002]
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniMachine
metadata: {name: 27c16241-96bf-4f17-9579-000000000001}
spec:
  clusterRef: {name: scenario}
  install: {disk: /dev/vda}
`
