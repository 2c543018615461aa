package contract

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// codes tests the errors for writes that are well formed but come at the wrong time.
func (s *suite) codes(t *testing.T) {
	st := s.as(t, "Operator")
	cluster := newCluster(unique("codes"))

	if err := st.Create(deadline(t), cluster); err != nil {
		t.Fatal(err)
	}

	s.settle(t, cluster)

	t.Run("create what exists", func(t *testing.T) {
		err := st.Create(deadline(t), newCluster(cluster.Metadata().ID()))
		wantError(t, err, "AlreadyExists", "already exists")

		if !state.IsConflictError(err) {
			t.Errorf("error %v is no conflict to the library", err)
		}
	})

	t.Run("get what is missing", func(t *testing.T) {
		_, err := st.Get(deadline(t), omni.NewCluster(unique("missing")).Metadata())
		wantError(t, err, "NotFound")

		if !state.IsNotFoundError(err) {
			t.Errorf("error %v is not found to the library", err)
		}
	})

	t.Run("update what is missing", func(t *testing.T) {
		missing := newCluster(unique("missing"))
		missing.Metadata().SetVersion(cluster.Metadata().Version())
		wantError(t, st.Update(deadline(t), missing), "NotFound")
	})

	t.Run("tear down what is missing", func(t *testing.T) {
		_, err := st.Teardown(deadline(t), omni.NewCluster(unique("missing")).Metadata())
		wantError(t, err, "NotFound")
	})

	t.Run("update an old version", func(t *testing.T) { s.staleUpdate(t, st, cluster) })

	t.Run("destroy what is held", func(t *testing.T) {
		wantError(t, st.Destroy(deadline(t), cluster.Metadata()), "FailedPrecondition", "finalizers")
	})

	t.Run("update in the name of another owner", func(t *testing.T) {
		current, err := st.Get(deadline(t), cluster.Metadata())
		if err != nil {
			t.Fatal(err)
		}

		current.Metadata().Annotations().Set("example", "owner")
		err = st.Update(deadline(t), current, state.WithUpdateOwner("SomebodyElse"))
		wantError(t, err, "PermissionDenied", "is owned by")

		if !state.IsOwnerConflictError(err) {
			t.Errorf("error %v is no owner conflict to the library", err)
		}
	})

	s.remove(t, cluster.Metadata())
}

// staleUpdate tests that an update must carry the current version.
func (s *suite) staleUpdate(t *testing.T, st state.State, cluster *omni.Cluster) {
	first, err := st.Get(deadline(t), cluster.Metadata())
	if err != nil {
		t.Fatal(err)
	}

	second := first.DeepCopy()
	first.Metadata().Annotations().Set("example", "first")
	second.Metadata().Annotations().Set("example", "second")

	if err = st.Update(deadline(t), first); err != nil {
		t.Fatal(err)
	}

	err = st.Update(deadline(t), second)
	wantError(t, err, "FailedPrecondition", "update conflict")

	if !state.IsConflictError(err) || state.IsPhaseConflictError(err) || state.IsOwnerConflictError(err) {
		t.Errorf("error %v is no plain conflict to the library", err)
	}
}
