package e2e

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// Each fault of a connection has a reason of its own and a message that says what to do.
func TestConnectionFaults(t *testing.T) {
	t.Parallel()

	f := newFleet(t)

	expired, err := f.omni.CreateServiceAccount("expired", omnisim.RoleOperator, -time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	revoked, err := f.omni.CreateServiceAccount("revoked", omnisim.RoleOperator, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	if err := f.omni.RevokeKey(revoked); err != nil {
		t.Fatal(err)
	}

	weak, err := f.omni.CreateServiceAccount("weak", omnisim.RoleNone, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	ca := string(f.omni.CAPEM())

	for name, tc := range map[string]struct {
		key, endpoint, ca string
		condition, reason string
		text              string
	}{
		"environment-block": {"export OMNI_ENDPOINT=x\nexport OMNI_SERVICE_ACCOUNT_KEY=" + f.key, f.omni.Endpoint(), ca, v1alpha1.ConditionCredentialsFound, v1alpha1.ReasonKeyIsEnvironmentBlock, "OMNI_SERVICE_ACCOUNT_KEY"},
		"garbage":           {"not a key", f.omni.Endpoint(), ca, v1alpha1.ConditionCredentialsFound, v1alpha1.ReasonKeyInvalid, ""},
		"expired":           {expired, f.omni.Endpoint(), ca, v1alpha1.ConditionCredentialsFound, v1alpha1.ReasonKeyExpired, "expired"},
		"revoked":           {revoked, f.omni.Endpoint(), ca, v1alpha1.ConditionReachable, v1alpha1.ReasonUnauthenticated, ""},
		"role":              {weak, f.omni.Endpoint(), ca, v1alpha1.ConditionReachable, v1alpha1.ReasonPermissionDenied, "role"},
		"ca":                {f.key, f.omni.Endpoint(), otherCA(t), v1alpha1.ConditionReachable, v1alpha1.ReasonTLSFailed, "caBundle"},
		"down":              {f.key, "https://127.0.0.1:1", ca, v1alpha1.ConditionReachable, v1alpha1.ReasonUnreachable, "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &space{t: t, name: f.name}
			s.apply(secretManifest(name, tc.key, tc.endpoint), connectionManifest(name, tc.endpoint, name, tc.ca))

			message := s.waitCondition("oconn", name, tc.condition, metav1.ConditionFalse, tc.reason)
			if !strings.Contains(message, tc.text) {
				t.Errorf("the message does not say %q: %s", tc.text, message)
			}

			s.waitCondition("oconn", name, v1alpha1.ConditionReady, metav1.ConditionFalse, tc.reason)
		})
	}

	t.Run("no secret", func(t *testing.T) {
		s := &space{t: t, name: f.name}
		s.apply(connectionManifest("late", f.omni.Endpoint(), "late", ca))
		s.waitCondition("oconn", "late", v1alpha1.ConditionCredentialsFound, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound)
		s.apply(secretManifest("late", f.key, f.omni.Endpoint()))
		s.waitCondition("oconn", "late", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	})
}

// otherCA is a certificate that signed nothing here.
func otherCA(t *testing.T) string {
	t.Helper()

	other, err := omnisim.Start(omnisim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()

	return string(other.CAPEM())
}

func TestDocumentsThatDoNotFitTogether(t *testing.T) {
	t.Parallel()

	f := newFleet(t)

	f.apply(clusterManifest("waits"))
	f.waitCondition("ocl", "waits", v1alpha1.ConditionAssembled, metav1.ConditionFalse, v1alpha1.ReasonControlPlaneMissing)
	f.waitCondition("ocl", "waits", v1alpha1.ConditionReconciling, metav1.ConditionTrue, "")

	// The cluster comes last: one control plane alone would be applied at once.
	f.apply(controlPlaneManifest("one", "c", f.machines[0]), controlPlaneManifest("two", "c", f.machines[1]))
	f.known("ocp/one", "ocp/two")
	f.apply(clusterManifest("c"))

	f.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonMultipleControlPlanes, "one", "two")

	if f.view("c").Exists {
		t.Error("a cluster that does not fit together reached Omni")
	}

	f.run("delete", "ocp", "two")
	f.apply(workersManifest("a", "c", "workerSetName: pool"), workersManifest("b", "c", "workerSetName: pool"))

	f.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonDuplicateWorkerSet, "pool")

	f.run("delete", "ow", "b")
	f.apply(machineManifest(f.machines[3], "c"))
	f.waitCondition("om", f.machines[3], v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonNotListed)
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

func TestVersionThatOmniDoesNotKnow(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.apply(strings.Replace(clusterManifest("c"), "v1.35.1", "v1.99.0", 1), controlPlaneManifest("cp", "c", f.machines[0]))

	message := f.waitCondition("ocl", "c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRefused)
	if !strings.Contains(message, "1.99.0") {
		t.Errorf("the message does not name the version: %s", message)
	}

	f.apply(clusterManifest("c"))
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

// Omni goes away for a while: nothing is lost, the condition says so, and it goes on by itself.
func TestOmniGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.cluster("away")
	f.omni.GoDown()
	f.run("scale", "omniworkers/away-w", "--replicas=3")
	f.waitCondition("oconn", "omni", v1alpha1.ConditionReady, metav1.ConditionFalse, "")

	if err := f.omni.ComeBack(); err != nil {
		t.Fatal(err)
	}

	f.waitMachines("away", "away-w", 3)
	f.waitCondition("ocl", "away", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

// The controller is killed at any moment: the next one finishes.
func TestControllerKilled(t *testing.T) {
	slow(t)
	f := newFleet(t)
	f.apply(clusterManifest("killed"), controlPlaneManifest("killed-cp", "killed", f.machines[0]), workersManifest("killed-w", "killed", classOf(pool, 2)))

	for range 3 {
		stack.Controller.Kill()

		if err := stack.Controller.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}

		time.Sleep(phase)
	}

	f.waitCondition("ocl", "killed", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.run("delete", "ocl", "killed", "--wait=false")

	stack.Controller.Kill()

	if err := stack.Controller.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	f.waitGone("ocl", "killed")

	if view := f.view("killed"); view.Exists {
		t.Errorf("Omni still has %+v", view)
	}
}

// The API server is killed: what it acknowledged is there after the restart.
func TestAPIServerKilled(t *testing.T) {
	slow(t)
	s := newSpace(t)
	s.apply(clusterManifest("kept", "  suspend: true"))

	stack.OmniAPIServer.Kill()

	if err := stack.OmniAPIServer.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	s.wait("the object", func() error {
		_, err := tryGet[v1alpha1.OmniCluster](s, "ocl", "kept")

		return err
	})
}
