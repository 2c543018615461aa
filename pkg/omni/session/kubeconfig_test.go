package session

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// issuingSession returns a session of a service account at a simulated Omni with the cluster "production".
func issuingSession(t *testing.T, role omnisim.Role) (*omnisim.Server, *Session) {
	t.Helper()

	sim, err := omnisim.Start(omnisim.Options{Phase: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	if err = omnisim.CreateForeignCluster(t.Context(), sim.State(), "production", "1.35.1", "1.13.3"); err != nil {
		t.Fatal(err)
	}

	raw, err := sim.CreateServiceAccount("operator", role, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	key, err := ParseServiceAccountKey([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}

	client, err := Dial(t.Context(), Config{Endpoint: sim.Endpoint(), Key: key, CABundle: sim.CAPEM()})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = client.Close() })

	return sim, &Session{client: client}
}

func TestIssueKubeconfig(t *testing.T) {
	sim, session := issuingSession(t, omnisim.RoleOperator)
	request := KubeconfigRequest{Cluster: "production", User: "robot", Groups: []string{"deployers"}, TTL: time.Hour}

	var (
		kubeconfig []byte
		err        error
	)

	// Omni creates the cluster's UUID a moment after the cluster.
	await.Until(t, "the cluster's UUID", func() bool {
		kubeconfig, err = session.IssueKubeconfig(t.Context(), request)

		return !errors.Is(err, omni.ErrNoClusterUUID)
	})

	if err != nil || len(kubeconfig) == 0 {
		t.Fatalf("%d bytes, %v", len(kubeconfig), err)
	}

	unknown := request
	unknown.Cluster = "missing"

	if _, err := session.IssueKubeconfig(t.Context(), unknown); !errors.Is(err, omni.ErrNoClusterUUID) || omni.Classify(err) != omni.ClassNotReady {
		t.Errorf("unknown cluster: %v, class %s", err, omni.Classify(err))
	}

	tooLong := request
	tooLong.TTL = 11 * 365 * 24 * time.Hour

	if _, err := session.IssueKubeconfig(t.Context(), tooLong); omni.Classify(err) != omni.ClassRefused {
		t.Errorf("too long: %v, class %s", err, omni.Classify(err))
	}

	sim.Inject(omnisim.Fault{Method: "Kubeconfig", Code: codes.Unavailable, Message: "connection refused"})

	if _, err := session.IssueKubeconfig(t.Context(), request); omni.Classify(err) != omni.ClassUnreachable {
		t.Errorf("unreachable: %v, class %s", err, omni.Classify(err))
	}
}

func TestIssueKubeconfigNeedsTheRole(t *testing.T) {
	_, session := issuingSession(t, omnisim.RoleReader)

	_, err := session.IssueKubeconfig(t.Context(), KubeconfigRequest{Cluster: "production", User: "robot", Groups: []string{"g"}, TTL: time.Hour})
	if omni.Classify(err) != omni.ClassDenied {
		t.Errorf("%v, class %s", err, omni.Classify(err))
	}
}
