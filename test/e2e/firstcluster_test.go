package e2e

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

const firstClusterPage = "docs/how-to/first-cluster.md"

// newcomer is a reader with an empty namespace, an Omni with one machine and nothing else.
type newcomer struct {
	*reader

	omni     *omnisim.Server
	workload *env.Hub
}

func newNewcomer(t *testing.T) *newcomer {
	t.Helper()

	sim, err := omnisim.Start(omnisim.Options{Phase: phase})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	key, err := sim.CreateServiceAccount("omni-cluster-operator", omnisim.RoleOperator, 30*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	machines, err := sim.AddMachines(1)
	if err != nil {
		t.Fatal(err)
	}

	n := &newcomer{omni: sim, workload: workloads.Borrow(t)}
	n.reader = newSpace(t).newReader("OMNI_ENDPOINT="+sim.Endpoint(), "OMNI_SERVICE_ACCOUNT_KEY="+key, "MACHINE="+machines[0])

	// A person's kubeconfig opens a browser. This omnictl gives the administrator's.
	n.program("omnictl", `[ "$*" = "kubeconfig first.kubeconfig --cluster=first --merge=false" ]`+"\ncp "+n.workload.KubeconfigPath+" first.kubeconfig\n")

	return n
}

// The page docs/how-to/first-cluster.md leads from nothing to a node, with its own commands: nothing reaches Omni while
// the cluster is staged, and what the page makes it takes away again.
func TestFirstClusterPage(t *testing.T) {
	t.Parallel()

	n := newNewcomer(t)

	steps := pageBlocks(t, firstClusterPage, "sh")
	if len(steps) != 6 {
		t.Fatalf("the page has %d blocks of commands", len(steps))
	}

	n.connect()
	n.types(steps[1].text)
	n.wants(n.types(steps[2].text), "+4 ~0 -0", "workloads-everywhere")
	n.otherNetwork()

	if writes := n.omni.Writes(); len(writes) != 0 {
		t.Errorf("a staged cluster was written to Omni: %v", writes)
	}

	n.types(steps[3].text)
	n.join("first-node")
	n.wants(n.types(steps[4].text), "first-node", "Ready")

	n.types(steps[5].text)

	if view, err := n.omni.View("first"); err != nil || view.Exists {
		t.Errorf("Omni still has %+v: %v", view, err)
	}
}

// connect takes the page's first step. The simulator's certificate comes from an authority of its own.
func (n *newcomer) connect() {
	n.t.Helper()

	bundle := "\n  caBundle: " + base64.StdEncoding.EncodeToString(n.omni.CAPEM())
	n.types(strings.Replace(pageBlocks(n.t, firstClusterPage, "sh")[0].text, "\n  endpoint: $OMNI_ENDPOINT", "\n  endpoint: $OMNI_ENDPOINT"+bundle, 1))
}

// otherNetwork tries the page's patch for a CNI plugin of one's own: it is accepted.
func (n *newcomer) otherNetwork() {
	n.t.Helper()

	patches := pageBlocks(n.t, firstClusterPage, "yaml")
	if len(patches) != 1 {
		n.t.Fatalf("the page has %d patches", len(patches))
	}

	path := filepath.Join(n.dir, "network.yaml")
	if err := os.WriteFile(path, []byte(patches[0].text), 0o600); err != nil {
		n.t.Fatal(err)
	}

	out := n.types("kubectl patch ocl first --type=merge --patch-file=network.yaml --dry-run=server -o yaml")
	n.wants(out, "name: own-network", "disabled: true", "name: none")
}

// join registers a node that is ready, as the machine's kubelet would.
func (n *newcomer) join(name string) {
	n.t.Helper()

	nodes := n.workload.Client().CoreV1().Nodes()

	var node *corev1.Node

	_, err := nodes.Create(n.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatal(err)
	}

	// Controllers of the workload cluster change a new node, too.
	n.wait("the status of the node", func() error {
		if node, err = nodes.Get(n.t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}

		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
		_, err = nodes.UpdateStatus(n.t.Context(), node, metav1.UpdateOptions{})

		return err
	})

	n.t.Cleanup(func() {
		if err := nodes.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			n.t.Log(err)
		}
	})
}
