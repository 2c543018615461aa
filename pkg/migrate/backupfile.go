package migrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"omni.texashpc.com/omni-cluster-operator/pkg/disk"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// backupLimits bound a backup file that is read.
//
//nolint:gochecknoglobals // a constant
var backupLimits = foreign.Limits{Bytes: 1 << 30, Depth: 1000, Nodes: 100_000_000, Expanded: 1 << 30}

// readFile returns nil if there is no file. A file that is larger than a backup may be is an error.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}
	defer file.Close() // only read

	text, err := io.ReadAll(io.LimitReader(file, int64(backupLimits.Bytes)+1))
	if err == nil && len(text) > backupLimits.Bytes {
		err = fmt.Errorf("it has more than %d bytes: it is no file of this command", backupLimits.Bytes)
	}

	return text, err
}

// readBackup returns nil if there is no file.
func readBackup(ctx context.Context, path string) (*backup, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the backup %s: %w", path, err)
	}

	if text == nil {
		return nil, nil //nolint:nilnil // no file is an answer
	}

	read := &backup{}
	if err := foreign.Unmarshal(ctx, text, backupLimits, read); err != nil {
		return nil, fmt.Errorf("the backup %s cannot be read (%w): it is no file of this command, or damaged. It was left as it is", path, err)
	}

	if read.Format != backupFormat {
		return nil, fmt.Errorf("%s is no backup of this command (format %q, not %s): give another file. It was left as it is", path, read.Format, backupFormat)
	}

	return read, nil
}

// write replaces the file atomically: at every moment the old or the new one is on the disk. It reads the file back.
func (b *backup) write(ctx context.Context, path string) error {
	text, err := json.MarshalIndent(b, "", " ")
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}

	text = append(text, '\n')

	if err := disk.WriteFile(path, text); err != nil {
		return fmt.Errorf("write the backup %s: %w", path, err)
	}

	there, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the backup back: %w", err)
	}

	if !bytes.Equal(text, there) {
		return fmt.Errorf("the backup %s is not what was written: use another disk", path)
	}

	_, err = readBackup(ctx, path)

	return err
}
