package embeddedetcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/storage/wal"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

// refuseLostData keeps a server from starting empty if snapshots say that there were objects: after the loss of a
// volume, or with a volume that is not mounted. The hub's garbage collector would remove what has an owner
// reference to a missing object, and snapshots of the empty server would replace the good ones.
func refuseLostData(dataDir, snapshots string) error {
	if snapshots == "" || hasContent(dataDir) {
		return nil
	}

	newest, info, err := newestSnapshot(snapshots)
	if err != nil || newest == "" {
		return err
	}

	content := "damaged, as it seems"

	if info != nil {
		objects := 0
		for _, count := range info.Objects {
			objects += count
		}

		if objects == 0 {
			return nil
		}

		content = fmt.Sprintf("with %d objects", objects)
	}

	command := fmt.Sprintf("omni-apiserver snapshot restore %s --etcd-data-dir=%s", newest, dataDir)
	if hasData(dataDir) {
		command += " --replace" // what is left of it goes aside
	}

	return fmt.Errorf("there is no data, but a snapshot of it, %s, %s: is the right volume mounted? If the data is lost, restore it "+
		"(%s), or move the snapshots away to start without any object", newest, content, command)
}

// newestSnapshot returns the newest snapshot in a directory, and what it contains; nothing of that if it is damaged.
func newestSnapshot(snapshots string) (string, *snapshot.Info, error) {
	found, err := snapshot.InDirectory(snapshots)
	if err != nil || len(found) == 0 {
		return "", nil, err
	}

	newest := found[len(found)-1].Path

	info, err := snapshot.Inspect(newest)
	if err != nil {
		return newest, nil, nil //nolint:nilerr // the start needs no good one
	}

	return newest, info, nil
}

// hasContent reports whether there is a database or a log that etcd would go on with. Beside an empty directory, as it is
// left when somebody or a repair of the file system removed the files, etcd begins anew. So it does with the empty
// database of a very first start that was killed.
func hasContent(dataDir string) bool {
	if wal.Exist(filepath.Join(dataDir, memberDir, "wal")) {
		return true
	}

	info, err := os.Stat(databasePath(dataDir))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) // what cannot be read is not lost
	}

	return info.Size() > 0
}
