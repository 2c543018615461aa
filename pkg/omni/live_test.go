package omni

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

func TestInspect(t *testing.T) {
	st := newFakeOmni()
	locked, leaving := clusterNamed("locked"), clusterNamed("leaving")
	locked.Metadata().Annotations().Set(omnires.ClusterLocked, "")

	uuid := omnires.NewClusterUUID("marked")
	uuid.TypedSpec().Value.Uuid = "0a1b"

	left := omnires.NewClusterUUID("missing")
	left.TypedSpec().Value.Uuid = "2c3d"

	mustCreate(t, st, marked("marked", "uid-1"), clusterNamed("plain"), locked, leaving, uuid, left)
	tearDown(t, st, leaving)

	for name, want := range map[string]Live{
		"marked": {Exists: true, UUID: "0a1b", Marks: Marks{UID: "uid-1", Hub: "hub-1", Namespace: "prod", Name: "demo", ManagementCluster: "hub"}},
		"plain":  {Exists: true},
		"locked": {Exists: true, Locked: true},
		"leaving": {
			Exists: true, TearingDown: true,
		},
		"missing": {UUID: "2c3d"},
		"nobody":  {},
	} {
		got, err := Inspect(t.Context(), st, name, testKeys)
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Live{}, "Created", "TearingDownSince")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}

		if got.Exists == got.Created.IsZero() || got.TearingDown == got.TearingDownSince.IsZero() ||
			got.TearingDownSince.After(time.Now()) {
			t.Errorf("%s: times %+v", name, got)
		}
	}
}
