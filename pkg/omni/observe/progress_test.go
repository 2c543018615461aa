package observe

import (
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

func TestBlockerKnowsSinceWhen(t *testing.T) {
	morning := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	status := omnires.NewMachineStatus(omnitest.Machine1)
	status.Metadata().SetUpdated(morning)

	leaving := omnires.NewClusterMachineStatus(omnitest.Machine1)
	leaving.Metadata().SetUpdated(morning.Add(time.Hour))
	leaving.Metadata().SetPhase(resource.PhaseTearingDown)

	blocker := Blocker{Machine: omnitest.Machine1}
	blocker.learn(status)

	if !blocker.Since.IsZero() {
		t.Errorf("a machine that was not told to leave: since %v", blocker.Since)
	}

	later := leaving.DeepCopy()
	later.Metadata().SetUpdated(morning.Add(2 * time.Hour))

	blocker.learn(leaving)
	blocker.learn(later)

	if !blocker.Since.Equal(morning.Add(time.Hour)) {
		t.Errorf("since %v", blocker.Since)
	}
}

// TestBlockerThatIsBeingFreed checks that a leaving machine counts as connected although its status no longer has the
// cluster's label.
func TestBlockerThatIsBeingFreed(t *testing.T) {
	for name, test := range map[string]struct{ known, labelled, connected, disconnected, want, poweredOff bool }{
		"of the cluster":                {known: true, labelled: true, connected: true, want: true},
		"of the cluster, silent":        {known: true, labelled: true, disconnected: true},
		"of the cluster, shut down":     {known: true, labelled: true, poweredOff: true},
		"free already":                  {known: true, connected: true, want: true},
		"free already, silent":          {known: true, disconnected: true},
		"free already, shut down":       {known: true, poweredOff: true},
		"removed from Omni by somebody": {},
	} {
		t.Run(name, func(t *testing.T) {
			st := omnitest.NewFakeOmni()

			leaving := omnires.NewClusterMachineStatus(omnitest.Machine1)
			leaving.Metadata().Labels().Set(omnires.LabelCluster, "demo")

			status := omnires.NewMachineStatus(omnitest.Machine1)
			status.TypedSpec().Value.Connected = test.connected

			if test.disconnected {
				status.Metadata().Labels().Set(omnires.MachineStatusLabelDisconnected, "")
			}

			if test.labelled {
				status.Metadata().Labels().Set(omnires.LabelCluster, "demo")
			}

			created := []resource.Resource{omnires.NewCluster("demo"), leaving}
			if test.known {
				created = append(created, status)
			}

			for _, one := range created {
				if err := st.Create(t.Context(), one); err != nil {
					t.Fatal(err)
				}
			}

			progress, err := Progress(t.Context(), st, "demo")
			if err != nil || len(progress.Blockers) != 1 {
				t.Fatalf("%+v, %v", progress, err)
			}

			if got := progress.Blockers[0]; got.Connected != test.want || got.PoweredOff != test.poweredOff {
				t.Errorf("connected: %t, want %t; powered off: %t, want %t", got.Connected, test.want, got.PoweredOff, test.poweredOff)
			}
		})
	}
}
