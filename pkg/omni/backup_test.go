package omni_test

import (
	"strings"
	"testing"

	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

func TestBackupOf(t *testing.T) {
	set := omnires.NewMachineSet("demo-control-planes")
	if got := omni.BackupOf(set); got != "" {
		t.Errorf("without a backup: %q", got)
	}

	set.TypedSpec().Value.BootstrapSpec = &specs.MachineSetSpec_BootstrapSpec{ClusterUuid: "id", Snapshot: "a.snapshot"}
	if got := omni.BackupOf(set); got != "id/a.snapshot" {
		t.Errorf("with a backup: %q", got)
	}

	set.TypedSpec().Value.BootstrapSpec.Snapshot = strings.Repeat("a", 4096)
	if got := omni.BackupOf(set); len(got) > 600 {
		t.Errorf("%d bytes", len(got))
	}
}
