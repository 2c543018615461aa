package contract

import (
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

func newSet(cluster, suffix, role string) *omni.MachineSet {
	set := omni.NewMachineSet(cluster + "-" + suffix)
	set.Metadata().Labels().Set(omni.LabelCluster, cluster)
	set.Metadata().Labels().Set(role, "")

	return set
}

func renamed(cluster, id string) *omni.MachineSet {
	set := omni.NewMachineSet(id)
	set.Metadata().Labels().Set(omni.LabelCluster, cluster)
	set.Metadata().Labels().Set(omni.LabelWorkerRole, "")

	return set
}

func withClass(set *omni.MachineSet, class string) *omni.MachineSet {
	set.TypedSpec().Value.MachineAllocation = &specs.MachineSetSpec_MachineAllocation{Name: class, MachineCount: 1}

	return set
}

func newNode(machine string, set *omni.MachineSet) *omni.MachineSetNode {
	return omni.NewMachineSetNode(machine, set)
}

func locked(node *omni.MachineSetNode) *omni.MachineSetNode {
	node.Metadata().Annotations().Set(omni.MachineLocked, "")

	return node
}

func newPatch(t *testing.T, cluster, name, text string) *omni.ConfigPatch {
	t.Helper()

	patch := omni.NewConfigPatch(cluster + "-" + name)
	patch.Metadata().Labels().Set(omni.LabelCluster, cluster)

	if err := patch.TypedSpec().Value.SetUncompressedData([]byte(text)); err != nil {
		t.Fatal(err)
	}

	return patch
}

func newExtensions(cluster string, names ...string) *omni.ExtensionsConfiguration {
	extensions := omni.NewExtensionsConfiguration(unique(cluster))
	extensions.Metadata().Labels().Set(omni.LabelCluster, cluster)
	extensions.TypedSpec().Value.Extensions = names

	return extensions
}

func labelled[T resource.Resource](res T, cluster string) T {
	res.Metadata().Labels().Set(omni.LabelCluster, cluster)

	return res
}

// remove tears a resource down as Admin and waits until it is gone. The server destroys resources without finalizers.
func (s *suite) remove(t *testing.T, ptr resource.Pointer) {
	t.Helper()

	st := s.admin.Omni().State()
	if _, err := st.Teardown(deadline(t), ptr); err != nil {
		t.Fatal(err)
	}

	s.gone(t, ptr)
}

// gone waits until a resource does not exist.
func (s *suite) gone(t *testing.T, ptr resource.Pointer) {
	t.Helper()

	s.eventually(t, "gone: "+ptr.Type()+" "+ptr.ID(), func() bool {
		_, err := s.admin.Omni().State().Get(deadline(t), ptr)

		return state.IsNotFoundError(err)
	})
}

// settle waits until the server has processed a new cluster: until then it writes to the cluster, which would make the
// next update a conflict.
func (s *suite) settle(t *testing.T, cluster *omni.Cluster) {
	t.Helper()

	st, name := s.admin.Omni().State(), cluster.Metadata().ID()

	s.eventually(t, "settled: "+name, func() bool {
		for _, ptr := range []resource.Pointer{
			omni.NewClusterStatus(name).Metadata(), omni.NewClusterUUID(name).Metadata(), omni.NewClusterConfigVersion(name).Metadata(),
		} {
			if _, err := st.Get(deadline(t), ptr); err != nil {
				return false
			}
		}

		before, err := st.Get(deadline(t), cluster.Metadata())
		if err != nil {
			return false
		}

		time.Sleep(150 * time.Millisecond)

		after, err := st.Get(deadline(t), cluster.Metadata())

		return err == nil && before.Metadata().Version().Equal(after.Metadata().Version())
	})
}

func (s *suite) eventually(t *testing.T, what string, done func() bool) {
	t.Helper()

	for end := time.Now().Add(serverTimeout); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came: %s", what)
		}
	}
}
