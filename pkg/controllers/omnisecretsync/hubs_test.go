package omnisecretsync

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	seen "omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
)

// all is everything that was told so far.
func (m *mover) all() string {
	var told []string
	for len(m.told.Events) > 0 {
		told = append(told, <-m.told.Events)
	}

	return strings.Join(told, "\n")
}

// A mark from before it named a hub gets the hub in one write, which changes nothing else and is no write of the content.
func TestAnOldMarkIsCompletedOnce(t *testing.T) {
	m := newMover(t)
	m.to("apps", "a")
	m.settle()
	delete(m.store.secrets["apps/a"].Labels, labelHub)
	m.all()

	before, writes := m.store.secrets["apps/a"].DeepCopy(), m.store.version
	status := *m.sync.Status.DeepCopy()

	// Right after the last write, which counts as a fight where the content is another one.
	for range 3 {
		m.settle()
	}

	after := m.store.secrets["apps/a"]
	before.Labels[labelHub], before.ResourceVersion = thisHub, after.ResourceVersion

	if diff := cmp.Diff(before, after); diff != "" || m.store.version != writes+1 {
		t.Errorf("%d writes; the Secret (-want +got):\n%s", m.store.version-writes, diff)
	}

	if diff := cmp.Diff(status, m.sync.Status); diff != "" {
		t.Errorf("the status changed:\n%s", diff)
	}

	if told := m.all(); strings.Count(told, "MarkCompleted") != 1 || strings.Contains(told, "Updated") {
		t.Errorf("events:\n%s", told)
	}
}

// What another hub wrote for the same object is not written, not when the content changes either, and not deleted: with the
// object, as a former target, or to make room. It is told of each time that it is left.
func TestWhatAnotherHubWroteStays(t *testing.T) {
	for what, do := range map[string]func(m *mover){
		"deletion of the object": func(m *mover) { m.remove() },
		"former target": func(m *mover) {
			m.to("apps", "b")
			m.settle()
		},
		"adopted": func(m *mover) {
			m.sync.Spec.Adopt = true

			if outcome := m.run(); outcome.Reason() != v1alpha1.ReasonOwnedByOtherHub {
				m.Errorf("got %+v", outcome)
			}

			m.remove()
		},
	} {
		t.Run(what, func(t *testing.T) {
			m := newMover(t)
			m.to("apps", "a")
			m.settle()
			m.store.secrets["apps/a"].Labels[labelHub] = "hub-2"
			m.store.secrets["apps/a"].Data = nil
			m.sync.Status.LastSyncTime = nil // it was written long ago

			before := m.store.secrets["apps/a"].DeepCopy()

			outcome := m.run()
			if !outcome.Stalls() || outcome.Reason() != v1alpha1.ReasonOwnedByOtherHub || !strings.Contains(outcome.Message(), "another hub, hub-2 (this hub is "+thisHub+")") {
				t.Fatalf("got %+v", outcome)
			}

			m.all()
			do(m)

			if diff := cmp.Diff(before, m.store.secrets["apps/a"]); diff != "" {
				t.Errorf("the Secret of the other hub changed:\n%s", diff)
			}

			if told := m.all(); strings.Count(told, "Warning LeftBehind Secret apps/a stays") != 1 || !strings.Contains(told, "hub-2") {
				t.Errorf("events:\n%s", told)
			}
		})
	}
}

// A person says that the other hub is gone: what it wrote is taken over with one write, and deleted with the object.
func TestAPreviousHubIsTakenOver(t *testing.T) {
	m := newMover(t)
	m.to("apps", "a")
	m.settle()
	m.store.secrets["apps/a"].Labels[labelHub] = "hub-0"
	m.all()

	writes := m.store.version

	for range 2 {
		m.settle()
	}

	if got := m.store.secrets["apps/a"].Labels[labelHub]; got != thisHub || m.store.version != writes+1 {
		t.Errorf("%d writes; the mark names hub %q", m.store.version-writes, got)
	}

	if told := m.all(); strings.Count(told, "TakenOver Took Secret apps/a in the workload cluster over from hub hub-0") != 1 {
		t.Errorf("events:\n%s", told)
	}

	// Also with another content.
	m.store.secrets["apps/a"].Labels[labelHub], m.store.secrets["apps/a"].Data = "hub-0", nil
	m.sync.Status.LastSyncTime = nil
	m.settle()

	if told := m.all(); strings.Count(told, "TakenOver") != 1 || strings.Count(told, "Updated Secret apps/a") != 1 {
		t.Errorf("events:\n%s", told)
	}

	// And what was not looked at since.
	m.store.secrets["apps/a"].Labels[labelHub] = "hub-0"
	m.remove()

	if got := m.store.names(); got != "" {
		t.Errorf("the cluster has %q", got)
	}
}

// Somebody who takes the hub off again and again does not make the controller write in a loop.
func TestAMarkThatIsFoughtOver(t *testing.T) {
	m := newMover(t)
	m.to("apps", "a")
	m.settle()

	m.r.options.Now = func() time.Time { return time.Unix(3600, 0) }
	m.store.looked = nil

	for range 3 {
		delete(m.store.secrets["apps/a"].Labels, labelHub)

		version := m.sync.Status.DeepCopy()
		m.settle()

		// The status is as before, so nothing but the interval starts the next run.
		if diff := cmp.Diff(version, &m.sync.Status); diff != "" {
			t.Fatal(diff)
		}
	}
}

// withoutOmni gives the object the real access, in a process that has not read Omni: who it sees to have the OmniCluster is noted in
// owners.
func (m *mover) withoutOmni() (owners *seen.Owners, parent *v1alpha1.OmniCluster) {
	m.Helper()

	parent = &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: m.sync.Namespace, Name: "demo"}}
	parent.Status.HubID = thisHub
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.sync.Namespace, Name: "access"}, Data: map[string][]byte{"kubeconfig": kubeconfigFor(m.T, m.serve)},
	}
	api := looptest.NewAPI(parent, secret).Build()
	owners = seen.NewOwners()
	m.access = &clusteraccess.Access{Clusters: clusteraccess.NewClusters(m.r.options.Now, loopback()), Client: api, Live: api, HubID: thisHub, Owners: owners}
	m.sync.Spec.ClusterRef.Name, m.sync.Spec.KubeconfigSecretRef.Name, m.sync.DeletionTimestamp = "demo", "access", nil

	return owners, parent
}

// This hub comes back after another one took its clusters over and removed a copy. Its own status is from before, and nothing in the
// workload cluster says what happened: the copy is not written again before this process has seen in Omni whose the cluster is. What is
// there, and a first copy, do not wait.
func TestACopyThatIsGoneWaitsForOmni(t *testing.T) {
	m := newMover(t)
	owners, parent := m.withoutOmni()

	m.to("apps", "a")
	m.settle()

	m.store.secrets["apps/a"].Data = nil
	m.sync.Status.LastSyncTime = nil // it was written long ago
	m.settle()

	delete(m.store.secrets, "apps/a")
	m.all()

	before, version := m.sync.Status.DeepCopy(), m.store.version

	for range 3 {
		outcome := m.run()
		if outcome.Continues() || outcome.Stalls() || outcome.Reason() != v1alpha1.ReasonClusterNotInOmni || !strings.Contains(outcome.Message(), "Secret apps/a was made by this object and is gone") {
			t.Fatalf("got %+v", outcome)
		}
	}

	if diff := cmp.Diff(before, &m.sync.Status); diff != "" || m.store.version != version || m.all() != "" {
		t.Errorf("%d writes; the status changed:\n%s", m.store.version-version, diff)
	}

	owners.Note(parent)
	m.settle()

	if got := m.store.names(); got != "apps/a" {
		t.Errorf("the cluster has %q", got)
	}

	// Another target is a first copy.
	owners.Lost(client.ObjectKeyFromObject(parent))
	m.to("apps", "b")
	m.settle()

	if got := m.store.names(); got != "apps/b" {
		t.Errorf("the cluster has %q", got)
	}
}
