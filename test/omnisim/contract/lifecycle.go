package contract

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/template"
)

// document returns a cluster template with two patches, a listed control plane machine that does not exist, and an
// empty worker set.
func document(name, workers string) string {
	return fmt.Sprintf(`kind: Cluster
name: %s
annotations:
  example.com/mark: one
kubernetes:
  version: v1.35.1
talos:
  version: v1.13.2
patches:
  - name: first
    inline: |
      machine:
        sysctls:
          vm.swappiness: "10"
  - name: second
    inline: |
      machine:
        sysctls:
          vm.dirty_ratio: "20"
---
kind: ControlPlane
machines:
  - 11111111-1111-1111-1111-%012x
---
kind: Workers
name: %s
`, name, len(name), workers)
}

func plan(ctx context.Context, t *testing.T, st state.State, text string) *template.SyncResult {
	t.Helper()

	loaded, err := template.Load(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}

	if err = loaded.Validate(); err != nil {
		t.Fatal(err)
	}

	result, err := loaded.Sync(ctx, st)
	if err != nil {
		t.Fatal(err)
	}

	return result
}

// apply writes a plan and returns the number of writes. It requests teardowns and does not wait for them.
func apply(ctx context.Context, t *testing.T, st state.State, result *template.SyncResult) (creates, updates, destroys int) {
	t.Helper()

	for _, res := range result.Create {
		if err := st.Create(ctx, res); err != nil {
			t.Fatal(err)
		}
	}

	for _, change := range result.Update {
		if err := st.Update(ctx, change.New); err != nil {
			t.Fatal(err)
		}
	}

	for _, group := range result.Destroy {
		for _, res := range group {
			if _, err := st.Teardown(ctx, res.Metadata()); err != nil {
				t.Fatal(err)
			}

			destroys++
		}
	}

	return len(result.Create), len(result.Update), destroys
}

// sync tests that a template becomes resources, that a second sync has nothing to do, that a sync detects a change and
// drift, and that the role Operator is enough for all of it.
func (s *suite) sync(t *testing.T) {
	ctx, st, name := deadline(t), s.as(t, "Operator"), unique("sync")

	creates, updates, destroys := apply(ctx, t, st, plan(ctx, t, st, document(name, "workers")))
	if creates != 6 || updates != 0 || destroys != 0 {
		t.Errorf("first sync: %d creates, %d updates, %d destroys, want 6, 0, 0", creates, updates, destroys)
	}

	// The server's own writes to the resources are no difference to the template.
	s.settle(t, omni.NewCluster(name))

	if again := plan(ctx, t, st, document(name, "workers")); len(again.Create)+len(again.Update)+len(again.Destroy[0])+len(again.Destroy[1]) != 0 {
		t.Errorf("a second sync would do %+v", again)
	}

	t.Run("status", func(t *testing.T) { s.status(t, name) })

	t.Run("drift", func(t *testing.T) {
		_, err := safe.StateUpdateWithConflicts(ctx, s.admin.Omni().State(), omni.NewCluster(name).Metadata(), func(cluster *omni.Cluster) error {
			cluster.Metadata().Annotations().Set("example.com/mark", "two")
			cluster.Metadata().Annotations().Set("example.com/other", "three")

			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		if _, changed, _ := apply(ctx, t, st, plan(ctx, t, st, document(name, "workers"))); changed != 1 {
			t.Errorf("%d updates against drift, want 1", changed)
		}
	})

	t.Run("another set", func(t *testing.T) {
		added, _, removed := apply(ctx, t, st, plan(ctx, t, st, document(name, "others")))
		if added != 1 || removed != 1 {
			t.Errorf("renaming a set: %d creates, %d destroys, want 1, 1", added, removed)
		}

		s.gone(t, omni.NewMachineSet(name+"-workers").Metadata())
	})

	s.remove(t, omni.NewCluster(name).Metadata())
}

// status tests the statuses of a cluster whose machines do not exist.
func (s *suite) status(t *testing.T, name string) {
	st := s.admin.Omni().State()

	s.eventually(t, "status of "+name, func() bool {
		current, err := safe.StateGetByID[*omni.ClusterStatus](deadline(t), st, name)
		if err != nil {
			return false
		}

		spec := current.TypedSpec().Value

		return !spec.Ready && !spec.KubernetesAPIReady && !spec.ControlplaneReady && spec.GetMachines().GetRequested() == 1 &&
			spec.TalosVersion == "1.13.2" && spec.KubernetesVersion == "1.35.1"
	})

	s.eventually(t, "machine set status of "+name, func() bool {
		current, err := safe.StateGetByID[*omni.MachineSetStatus](deadline(t), st, name+"-control-planes")
		if err != nil {
			return false
		}

		cluster, _ := current.Metadata().Labels().Get(omni.LabelCluster)

		return cluster == name && !current.TypedSpec().Value.Ready && current.TypedSpec().Value.GetMachines().GetRequested() == 1
	})

	s.eventually(t, "Talos upgrade status of "+name, func() bool {
		upgrade, err := safe.StateGetByID[*omni.TalosUpgradeStatus](deadline(t), st, name)

		return err == nil && upgrade.TypedSpec().Value.Phase == specs.TalosUpgradeStatusSpec_Done &&
			upgrade.TypedSpec().Value.LastUpgradeVersion == "1.13.2"
	})

	if _, err := safe.StateGetByID[*omni.KubernetesUpgradeStatus](deadline(t), st, name); !state.IsNotFoundError(err) {
		t.Errorf("there is a Kubernetes upgrade status before Kubernetes is there: %v", err)
	}
}

// deletion tests that the teardown of a cluster removes all of its resources, without the client's help.
func (s *suite) deletion(t *testing.T) {
	ctx, st, name := deadline(t), s.as(t, "Operator"), unique("delete")

	apply(ctx, t, st, plan(ctx, t, st, document(name, "workers")))
	s.settle(t, omni.NewCluster(name))

	extensions := newExtensions(name)
	if err := st.Create(ctx, extensions); err != nil {
		t.Fatal(err)
	}

	result, err := template.WithCluster(name).Delete(ctx, st)
	if err != nil {
		t.Fatal(err)
	}

	// The library does not list resources that the server removes with others.
	if len(result.Destroy[0]) != 0 || len(result.Destroy[1]) != 1 {
		t.Errorf("the library destroys %v, want the cluster alone", result.Destroy)
	}

	if _, err = st.Teardown(ctx, omni.NewCluster(name).Metadata()); err != nil {
		t.Fatal(err)
	}

	s.gone(t, omni.NewCluster(name).Metadata())
	s.gone(t, omni.NewMachineSet(name+"-control-planes").Metadata())
	s.gone(t, omni.NewMachineSet(name+"-workers").Metadata())
	s.gone(t, omni.NewMachineSetNode(fmt.Sprintf("11111111-1111-1111-1111-%012x", len(name)), omni.NewMachineSet("")).Metadata())
	s.gone(t, omni.NewClusterStatus(name).Metadata())
	s.gone(t, omni.NewClusterUUID(name).Metadata())
	s.gone(t, extensions.Metadata())

	left, err := template.WithCluster(name).Delete(ctx, st)
	if err != nil {
		t.Fatal(err)
	}

	if len(left.Destroy[0])+len(left.Destroy[1]) != 0 {
		t.Errorf("left behind: %v", left.Destroy)
	}
}

// locks tests what Omni refuses for a locked cluster.
func (s *suite) locks(t *testing.T) {
	ctx, st, name := deadline(t), s.as(t, "Operator"), unique("locked")
	apply(ctx, t, st, plan(ctx, t, st, document(name, "workers")))
	s.settle(t, omni.NewCluster(name))

	mark := func(change func(*omni.Cluster)) error {
		_, err := safe.StateUpdateWithConflicts(ctx, st, omni.NewCluster(name).Metadata(), func(cluster *omni.Cluster) error {
			change(cluster)

			return nil
		})

		return err
	}

	if err := mark(func(c *omni.Cluster) { c.Metadata().Annotations().Set(omni.ClusterLocked, "") }); err != nil {
		t.Fatal(err)
	}

	t.Run("update", func(t *testing.T) {
		wantError(t, mark(func(c *omni.Cluster) { c.TypedSpec().Value.KubernetesVersion = "1.36.1" }), "InvalidArgument", "is locked")
	})

	t.Run("new set", func(t *testing.T) {
		wantError(t, st.Create(ctx, newSet(name, "more", omni.LabelWorkerRole)), "InvalidArgument", "is locked")
	})

	t.Run("teardown of a set", func(t *testing.T) {
		_, err := st.Teardown(ctx, omni.NewMachineSet(name+"-workers").Metadata())
		wantError(t, err, "InvalidArgument", "is locked")
	})

	t.Run("teardown", func(t *testing.T) {
		_, err := st.Teardown(ctx, omni.NewCluster(name).Metadata())
		wantError(t, err, "InvalidArgument", "is locked")
	})

	t.Run("a sync unlocks", func(t *testing.T) {
		if _, updates, _ := apply(ctx, t, st, plan(ctx, t, st, document(name, "workers"))); updates != 1 {
			t.Errorf("%d updates, want the one that takes the lock away", updates)
		}
	})

	s.remove(t, omni.NewCluster(name).Metadata())
}
