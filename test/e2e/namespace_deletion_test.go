package e2e

import (
	"testing"
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
}
