package embeddedetcd

import (
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

// refuseLostData keeps a server from starting empty if snapshots say that there were objects: after the loss of a
// volume, or with a volume that is not mounted. The hub's garbage collector would remove the dependents of the
// missing objects, and snapshots of the empty server would replace the good ones.
func refuseLostData(dataDir, snapshots string) error {
	if snapshots == "" || hasData(dataDir) {
		return nil
	}

	found, err := snapshot.InDirectory(snapshots)
	if err != nil || len(found) == 0 {
		return err // says it all
	}

	newest := found[len(found)-1].Path

	content := "damaged, as it seems"

	if info, err := snapshot.Inspect(newest); err == nil {
		objects := 0
		for _, count := range info.Objects {
			objects += count
		}

		if objects == 0 {
			return nil
		}

		content = fmt.Sprintf("with %d objects", objects)
	}

	return fmt.Errorf("there is no data, but a snapshot of it, %s, %s: is the right volume mounted? If the data is lost, restore it "+
		"(omni-apiserver snapshot restore %s --etcd-data-dir=%s), or move the snapshots away to start without any object",
		newest, content, newest, dataDir)
}
