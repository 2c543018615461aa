package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// TestServedNamespaceDeleted: a controller that serves one namespace has its rights and its lease in it. Deleting the
// namespace takes neither before the clusters are destroyed, not even from another leader; then all of it goes.
func TestServedNamespaceDeleted(t *testing.T) {
	slow(t)
	t.Parallel()

	s := newStandby(t)
	s.cluster("c", "")

	s.omni.Pause()
	s.run("delete", "namespace", s.name, "--wait=false")
	s.waitGone("rolebinding", "omni-controller")
	s.leader().Kill()
	s.omni.Resume()
	s.leader()

	s.run("delete", "namespace", s.name, "--ignore-not-found", namespaceTimeout)
	s.waitRemoteGone("c")
	s.wantDestroyed("Cluster c")
	s.endedWithLease()
}

// TestServedNamespaceDeletedWithoutAPIServer: omni-apiserver is away when the namespace is deleted, for longer than a deleted kubeconfig
// waits for its users. The rights, the lease and the kubeconfig are deleted then, and our objects cannot be. None of the three goes
// before what needs them has been cleaned up.
func TestServedNamespaceDeletedWithoutAPIServer(t *testing.T) {
	slow(t)
	t.Parallel()

	s := newStandby(t)
	r := releasingIn(deliveryIn(s.fleet))
	r.apply(r.syncManifest("pull", deletes), r.release())
	r.ready("oss", "registry")
	r.ready("ohr", "app")
	r.run("patch", "ocl", "demo", "--type=merge", "-p", `{"spec":{"deletePolicy":{"orphan":true}}}`)

	server := s.stack().OmniAPIServer
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}

	s.run("delete", "namespace", s.name, "--wait=false")
	s.waitGone("rolebinding", "omni-controller")
	time.Sleep(35 * time.Second)

	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	s.run("delete", "namespace", s.name, "--ignore-not-found", namespaceTimeout)
	r.waitCleaned()
	s.wantDestroyed()
	s.endedWithLease()
}

// endedWithLease ends the controllers. Their lease went with the namespace, so on a busy machine the leader has ended by itself before.
func (s *standby) endedWithLease() {
	s.t.Helper()

	for _, controller := range s.controllers {
		if err := controller.Crashed(); err != nil {
			lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
			if !strings.Contains(lines[len(lines)-1], "leader election lost") {
				s.t.Error(err)
			}
		}

		controller.Kill()
	}
}

// TestServedNamespaceTakenOver: a controller of all namespaces takes the place of one that served a namespace, and releases what
// that kept there.
func TestServedNamespaceTakenOver(t *testing.T) {
	slow(t)
	t.Parallel()

	s := newStandby(t)
	s.cluster("c", "")

	kept := func() string {
		return s.run("get", "lease/omni-controller", "rolebinding/omni-controller-deletion", "--ignore-not-found", "-o",
			"jsonpath={range .items[*]}{.kind} {.metadata.finalizers}\n{end}")
	}
	s.wait("the lease and the copy to be kept", func() error {
		if got := kept(); got != "Lease [\"omni.texashpc.com/in-use\"]\nRoleBinding [\"omni.texashpc.com/in-use\"]\n" {
			return errors.New(got)
		}

		return nil
	})

	for _, controller := range s.controllers {
		if err := controller.Stop(); err != nil {
			t.Fatal(err)
		}
	}

	if _, err := s.hub.StartController(t.Context(), env.ControllerOptions{
		Name: "omni-controller-of-all", AllNamespaces: true, LeaderElection: true, DestroySettleTime: settleTime,
		Args: []string{"--leader-election-namespace=" + env.SystemNamespace},
	}); err != nil {
		t.Fatal(err)
	}

	s.wait("the lease and the copy to be released", func() error {
		if got := kept(); got != "Lease \n" {
			return fmt.Errorf("there is %q", got)
		}

		return nil
	})

	s.run("delete", "namespace", s.name, namespaceTimeout)
	s.waitRemoteGone("c")
	s.wantDestroyed("Cluster c")
}
