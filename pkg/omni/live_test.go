package omni

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

var testKeys = MarkKeys{
	UID:               "omni.texashpc.com/owner-uid",
	Hub:               "omni.texashpc.com/hub-id",
	Namespace:         "omni.texashpc.com/owner-namespace",
	Name:              "omni.texashpc.com/owner-name",
	ManagementCluster: "omni.texashpc.com/management-cluster",
}

func marked(name, uid string) *omnires.Cluster {
	cluster := clusterNamed(name)
	annotations := cluster.Metadata().Annotations()
	annotations.Set(testKeys.UID, uid)
	annotations.Set(testKeys.Hub, "hub-1")
	annotations.Set(testKeys.Namespace, "prod")
	annotations.Set(testKeys.Name, "demo")
	annotations.Set(testKeys.ManagementCluster, "hub")
	annotations.Set("kept", "yes")

	return cluster
}

func ofUID1(marks Marks) bool { return marks.UID == "uid-1" }

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

func TestRemoveMarks(t *testing.T) {
	st := newFakeOmni()
	leaving := marked("leaving", "uid-1")
	mustCreate(t, st, marked("ours", "uid-1"), marked("theirs", "uid-2"), clusterNamed("plain"), leaving)
	tearDown(t, st, leaving)

	for cluster, want := range map[string]bool{"ours": true, "theirs": false, "plain": false, "missing": false, "leaving": true} {
		for _, expected := range []bool{want, false} { // the second time there is nothing to do
			removed, err := RemoveMarks(t.Context(), st, cluster, testKeys, ofUID1)
			if err != nil || removed != expected {
				t.Errorf("%s: %v, %v", cluster, removed, err)
			}
		}
	}

	ours, err := st.Get(t.Context(), clusterNamed("ours").Metadata())
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"kept"}, ours.Metadata().Annotations().Keys()); diff != "" {
		t.Error(diff)
	}

	theirs, err := Inspect(t.Context(), st, "theirs", testKeys)
	if err != nil || theirs.Marks.UID != "uid-2" {
		t.Errorf("theirs: %+v, %v", theirs, err)
	}
}
