package e2e

import (
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// The commands of docs/how-to/move-omni.md lead a connection to the same Omni under another name: the cluster is found there, which
// is told once, and nothing is written to Omni.
func TestMoveOmniPage(t *testing.T) {
	t.Parallel()

	steps := commandsOf(t, "docs/how-to/move-omni.md", 5)

	n := newNewcomer(t)
	n.connect()
	n.types(pageBlocks(t, firstClusterPage, "sh")[1].text)
	n.types(`kubectl patch ocl first --type=merge -p '{"spec":{"suspend":false}}'`)

	from := n.omni.Endpoint()
	to := strings.Replace(from, "127.0.0.1", "localhost", 1)

	n.types("kubectl wait ocl/first --for=jsonpath='{.status.endpoint}'=" + from + " --timeout=1m && kubectl wait ocl/first --for=condition=Synced --timeout=1m")
	n.environment = append(n.environment, "OLD_URL="+from, "NEW_URL="+to)
	writes := len(n.omni.Writes())

	for _, step := range steps {
		n.types(step.text)
	}

	if annotation := n.run("get", "secret", "omni-service-account", "-o", `jsonpath={.metadata.annotations.omni\.texashpc\.com/allowed-endpoints}`); annotation != to {
		t.Errorf("the key may be used with %q", annotation)
	}

	if connection := get[v1alpha1.OmniConnection](n.space, "oconn", "omni"); connection.Status.Endpoint != to || connection.Status.Access == nil {
		t.Errorf("%+v", connection.Status)
	}

	if made := n.omni.Writes()[writes:]; len(made) != 0 {
		t.Errorf("the move wrote %v", made)
	}

	n.waitEvent("EndpointMoved", from, to)

	if moves := n.events("first", "EndpointMoved"); len(moves) != 1 {
		t.Errorf("events %q", moves)
	}
}
