package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

func TestRemoveMarks(t *testing.T) {
	st := omnitest.NewFakeOmni()
	leaving := omnitest.Marked("leaving", "uid-1")
	omnitest.MustCreate(t, st, omnitest.Marked("ours", "uid-1"), omnitest.Marked("theirs", "uid-2"), omnitest.ClusterNamed("plain"), leaving)
	omnitest.TearDown(t, st, leaving)

	version := func(cluster string) string {
		found, err := omni.ReadCluster(t.Context(), st, cluster)
		if err != nil {
			t.Fatal(err)
		}

		if found == nil {
			return ""
		}

		return found.Metadata().Version().String()
	}

	for cluster, want := range map[string]bool{"ours": true, "theirs": false, "plain": false, "missing": false, "leaving": true} {
		for _, expected := range []bool{want, false} { // the second time there is nothing to do
			before := version(cluster)
			if err := RemoveMarks(t.Context(), st, cluster, omnitest.OfUID1); err != nil {
				t.Errorf("%s: %v", cluster, err)
			}

			if written := version(cluster) != before; written != expected {
				t.Errorf("%s: written: %v", cluster, written)
			}

			if live, err := omni.Inspect(t.Context(), st, cluster); err != nil || omnitest.OfUID1(live.Marks) {
				t.Errorf("%s: %+v, %v", cluster, live, err)
			}
		}
	}

	ours, err := st.Get(t.Context(), omnitest.ClusterNamed("ours").Metadata())
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"kept"}, ours.Metadata().Annotations().Keys()); diff != "" {
		t.Error(diff)
	}

	theirs, err := omni.Inspect(t.Context(), st, "theirs")
	if err != nil || theirs.Marks.UID != "uid-2" {
		t.Errorf("theirs: %+v, %v", theirs, err)
	}
}
