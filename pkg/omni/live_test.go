package omni_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

func TestInspect(t *testing.T) {
	st := omnitest.NewFakeOmni()
	locked, leaving := omnitest.ClusterNamed("locked"), omnitest.ClusterNamed("leaving")
	locked.Metadata().Annotations().Set(omnires.ClusterLocked, "")

	uuid := omnires.NewClusterUUID("marked")
	uuid.TypedSpec().Value.Uuid = "0a1b"

	left := omnires.NewClusterUUID("missing")
	left.TypedSpec().Value.Uuid = "2c3d"

	omnitest.MustCreate(t, st, omnitest.Marked("marked", "uid-1"), omnitest.ClusterNamed("plain"), locked, leaving, uuid, left)
	omnitest.TearDown(t, st, leaving)

	for name, want := range map[string]omni.Live{
		"marked": {Exists: true, UUID: "0a1b", Marks: omni.Marks{UID: "uid-1", Hub: "hub-1", Namespace: "prod", Name: "demo", ManagementCluster: "hub"}},
		"plain":  {Exists: true},
		"locked": {Exists: true, Locked: true},
		"leaving": {
			Exists: true, TearingDown: true,
		},
		"missing": {UUID: "2c3d"},
		"nobody":  {},
	} {
		got, err := omni.Inspect(t.Context(), st, name)
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(omni.Live{}, "Created", "TearingDownSince")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}

		if got.Exists == got.Created.IsZero() || got.TearingDown == got.TearingDownSince.IsZero() ||
			got.TearingDownSince.After(time.Now()) {
			t.Errorf("%s: times %+v", name, got)
		}
	}
}
