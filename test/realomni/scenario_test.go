//go:build realomni

package realomni

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/uuid"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

const (
	namespace  = "fleet"
	eventually = time.Minute
	cluster    = "scenario"
	// ownPrefix begins the names of the clusters that may be made in an Omni which others use.
	ownPrefix = "oco-test-"
)

// scenario is a stack whose connection leads to the real Omni, and a client of our own beside it.
type scenario struct {
	*testing.T

	stack *env.Stack
	other state.State
	// own is the cluster that is removed at the end, whatever happened; none if it is empty.
	own string
}

// TestClusterScenario runs against an Omni that others use, too: see hack/test-omni.sh. It needs an account with role Operator, makes
// one cluster with a random name, of machines that there are not, and removes it.
func TestClusterScenario(t *testing.T) {
	own := ownPrefix + uuid.NewString()[:8]
	kubernetes, talos := cmp.Or(os.Getenv("OMNI_KUBERNETES_VERSION"), "1.35.1"), cmp.Or(os.Getenv("OMNI_TALOS_VERSION"), "1.13.3")
	renamed := []string{"scenario", own, "v1.35.1", "v" + kubernetes, "v1.13.3", "v" + talos}

	for machine := range 4 {
		renamed = append(renamed, fmt.Sprintf("27c16241-96bf-4f17-9579-00000000000%d", machine), uuid.NewString())
	}

	fill := strings.NewReplacer(renamed...)

	s := &scenario{T: t, own: own}
	s.start()

	s.Log("connection")
	s.apply(connectionManifests(t))
	s.kubectl("wait", "oconn/omni", "--for=condition=Ready", "--timeout=60s")

	s.Log("sync")
	s.apply(fill.Replace(clusterManifests))
	s.kubectl("wait", "ocl/"+own, "--for=condition=Synced", "--timeout=60s")
	s.until("cluster with both sets", func(view omnisim.ClusterView) bool {
		return view.Exists && view.KubernetesVersion == kubernetes && view.Machines[own+"-control-planes"] == 1 && view.Machines[own+"-pool"] == 2
	})

	s.Log("change")
	s.kubectl("patch", "ow", "pool", "--type=json", "-p", fill.Replace(`[{"op":"add","path":"/spec/machines/-","value":"27c16241-96bf-4f17-9579-000000000003"}]`))
	s.until("third machine", func(view omnisim.ClusterView) bool { return view.Machines[own+"-pool"] == 3 })

	s.Log("suspend: a plan, and no change")
	s.kubectl("patch", "ocl", own, "--type=merge", "-p", `{"spec":{"suspend":true,"labels":{"staged":"yes"}}}`)
	s.kubectl("wait", "ocl/"+own, "--for=condition=Suspended", "--timeout=60s")
	s.kubectl("wait", "ocl/"+own, "--for=jsonpath={.status.plan.updates}=1", "--timeout=60s")

	if view := s.view(); view.Labels["staged"] != "" {
		t.Errorf("the suspended edit reached Omni: %v", view.Labels)
	}

	s.kubectl("patch", "ocl", own, "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	s.until("staged label", func(view omnisim.ClusterView) bool { return view.Labels["staged"] == "yes" })

	s.Log("drift made with another client is corrected, and what is theirs stays")

	if err := omnisim.AnnotateCluster(t.Context(), s.other, own, "theirs", "yes"); err != nil {
		t.Fatal(err)
	}

	_, err := safe.StateUpdateWithConflicts(t.Context(), s.other, omni.NewCluster(own).Metadata(), func(cluster *omni.Cluster) error {
		cluster.Metadata().Labels().Set("staged", "no")

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	s.until("drift to be gone", func(view omnisim.ClusterView) bool {
		return view.Labels["staged"] == "yes" && view.Annotations["theirs"] == "yes"
	})

	s.Log("a lock set in Omni is respected")

	if err := omnisim.AnnotateCluster(t.Context(), s.other, own, "omni.sidero.dev/cluster-locked", ""); err != nil {
		t.Fatal(err)
	}

	s.kubectl("wait", "ocl/"+own, "--for=condition=Stalled", "--timeout=60s")

	if err := omnisim.RemoveAnnotation(t.Context(), s.other, own, "omni.sidero.dev/cluster-locked"); err != nil {
		t.Fatal(err)
	}

	s.kubectl("wait", "ocl/"+own, "--for=condition=Synced", "--timeout=60s")

	s.Log("delete")
	s.kubectl("delete", "ocl", own, "--timeout=60s")

	if view := s.view(); view.Exists {
		t.Errorf("Omni still has %+v", view)
	}

	s.kubectl("delete", "oconn", "omni", "--timeout=60s")
}

func (s *scenario) start() {
	client, err := omnisim.Connect(os.Getenv("OMNI_ENDPOINT"), os.Getenv("OMNI_SERVICE_ACCOUNT_KEY"), authority(s.T))
	if err != nil {
		s.Fatal(err)
	}

	s.Cleanup(func() { _ = client.Close() })
	s.other = client.Omni().State()

	// The stack has ended by then.
	s.Cleanup(s.removeOwn)

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

// removeOwn removes what a failed test has left of its cluster.
func (s *scenario) removeOwn() {
	if !strings.HasPrefix(s.own, ownPrefix) {
		return
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), eventually)
	defer cancel()

	if err := omnisim.DeleteCluster(ctx, s.other, s.own); err != nil {
		s.Errorf("remove cluster %s from Omni: %v", s.own, err)
	}
}

func (s *scenario) apply(manifests string) {
	s.Helper()

	if _, _, err := s.stack.KubectlInput(s.Context(), strings.NewReader(manifests), "-n", namespace, "apply", "-f", "-"); err != nil {
		s.Fatal(strings.ReplaceAll(err.Error(), os.Getenv("OMNI_SERVICE_ACCOUNT_KEY"), "(the key)"))
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

	view, err := omnisim.ReadCluster(s.Context(), s.other, s.own)
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

// authority is the certificate authority of the Omni; nil if it is one that the machine trusts.
func authority(t *testing.T) []byte {
	t.Helper()

	file := os.Getenv("OMNI_CA_FILE")
	if file == "" {
		return nil
	}

	ca, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	return ca
}

func connectionManifests(t *testing.T) string {
	t.Helper()

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
  caBundle: %q
  auth: {serviceAccountSecretRef: {name: key}}
`, os.Getenv("OMNI_ENDPOINT"), os.Getenv("OMNI_SERVICE_ACCOUNT_KEY"), os.Getenv("OMNI_ENDPOINT"), base64.StdEncoding.EncodeToString(authority(t)))
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
