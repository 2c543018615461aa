package omnisim_test

import (
	"testing"

	"github.com/google/uuid"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// TestDeleteCluster checks that one cluster goes, with all that it has, and no other.
func TestDeleteCluster(t *testing.T) {
	sim := start(t, omnisim.Options{})
	ctx, st := deadline(t), sim.State()

	for _, name := range []string{"ours", "theirs"} {
		text := "kind: Cluster\nname: " + name + "\nkubernetes: {version: v1.35.1}\ntalos: {version: v1.13.3}\n---\nkind: ControlPlane\nmachines: [" + uuid.NewString() + "]\n"
		if err := omnisim.SyncTemplate(ctx, st, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}

	for range 2 { // the second time there is none
		if err := omnisim.DeleteCluster(ctx, st, "ours"); err != nil {
			t.Fatal(err)
		}
	}

	for name, want := range map[string]bool{"ours": false, "theirs": true} {
		if view, err := sim.View(name); err != nil || view.Exists != want || len(view.Machines) > 0 != want {
			t.Errorf("%s: %+v, %v", name, view, err)
		}
	}
}
