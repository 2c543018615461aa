package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// Names of scheduled snapshots: only files of exactly this form are ever counted or removed.
const (
	namePrefix = "omni-"
	nameSuffix = ".db"
)

// Scheduled is a file in a directory of scheduled snapshots.
type Scheduled struct {
	// Path is the file.
	Path string
	// Taken is when the snapshot was taken, from its name.
	Taken time.Time
	// Size is that of the file, in bytes.
	Size int64
}

// nameAt is the file name of a snapshot taken at a time.
func nameAt(taken time.Time) string {
	return namePrefix + taken.UTC().Format(words.TimeInNames) + nameSuffix
}

// takenAt reads the time of a file name, if it is one that nameAt makes.
func takenAt(name string) (time.Time, bool) {
	text, found := strings.CutPrefix(name, namePrefix)
	text, isDB := strings.CutSuffix(text, nameSuffix)

	taken, err := time.Parse(words.TimeInNames, text)

	return taken, found && isDB && err == nil && nameAt(taken) == name
}

// InDirectory returns the scheduled snapshots in a directory, oldest first. It does not verify them.
// A directory that does not exist has none.
func InDirectory(dir string) ([]Scheduled, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("list the snapshots: %w", err)
	}

	var found []Scheduled

	for _, entry := range entries { // sorted by name, so by time
		taken, ok := takenAt(entry.Name())

		info, err := entry.Info()
		if !ok || err != nil || !info.Mode().IsRegular() {
			continue
		}

		found = append(found, Scheduled{Path: filepath.Join(dir, entry.Name()), Taken: taken, Size: info.Size()})
	}

	return found, nil
}
