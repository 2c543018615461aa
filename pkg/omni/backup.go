package omni

import (
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// maxBackupBytes bounds what BackupOf returns: Omni takes names of 4096 bytes.
const maxBackupBytes = 512

// BackupOf returns the backup from which Omni makes the etcd of a control plane's MachineSet, as the UUID of the cluster that made it,
// a slash and the name of the snapshot; empty if its etcd begins empty. It is bounded foreign text.
func BackupOf(set *omnires.MachineSet) string {
	spec := set.TypedSpec().Value.GetBootstrapSpec()
	if spec == nil {
		return ""
	}

	return redact.Bounded(spec.GetClusterUuid()+"/"+spec.GetSnapshot(), maxBackupBytes)
}
