package migrate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/disk"
)

// journal is a file beside the backup with the IDs of the objects that an import has made or found since the backup was
// written, one a line. Each line is on the disk before the next object is made. The backup itself is too large to be
// written for each object; it gets the IDs at the end of the import, and the journal goes.
type journal struct{ file *os.File }

// journalOf is the name of the journal of a backup.
func journalOf(path string) string { return path + ".imported" }

// journalHeader is the first line of a journal: it names the content of the backup that the journal continues. A journal
// of another backup, or of an older state of it, counts for nothing.
func journalHeader(text []byte) string {
	sum := sha256.Sum256(text)

	return "omni-migrate-journal/v1 " + hex.EncodeToString(sum[:])
}

// newJournal begins the journal of the backup that is on the disk. It replaces another one, whose lines must be in that
// backup.
func newJournal(path string) (*journal, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the backup: %w", err)
	}

	if err := disk.WriteFile(journalOf(path), []byte(journalHeader(text)+"\n")); err != nil {
		return nil, fmt.Errorf("write %s: %w", journalOf(path), err)
	}

	file, err := os.OpenFile(journalOf(path), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", journalOf(path), err)
	}

	return &journal{file}, nil
}

// add returns when the ID is on the disk.
func (j *journal) add(id string) error {
	_, err := j.file.WriteString(id + "\n")
	if err = errors.Join(err, j.file.Sync()); err != nil {
		return fmt.Errorf("write %s: %w", j.file.Name(), err)
	}

	return nil
}

func (j *journal) close() error { return j.file.Close() }

// readJournal adds the IDs of the journal to a backup that was read; text is the backup's content. A last line that was
// cut does not count.
func (b *backup) readJournal(path string, text []byte) error {
	content, err := readFile(journalOf(path))
	if err != nil {
		return fmt.Errorf("read %s: %w", journalOf(path), err)
	}

	complete := content[:bytes.LastIndexByte(content, '\n')+1]
	lines := strings.Split(strings.TrimSuffix(string(complete), "\n"), "\n")

	if lines[0] != journalHeader(text) {
		return nil
	}

	there := map[string]bool{}
	for _, id := range b.Imported {
		there[id] = true
	}

	b.Imported = append(b.Imported, slices.DeleteFunc(lines[1:], func(id string) bool { return there[id] })...)

	return nil
}

// removeJournal removes a journal whose lines are in the backup.
func removeJournal(path string) error {
	if err := os.Remove(journalOf(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what is in the backup now: %w", err)
	}

	return nil
}
