package observe

import (
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni/omnitest"
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
