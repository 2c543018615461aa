package omni

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
