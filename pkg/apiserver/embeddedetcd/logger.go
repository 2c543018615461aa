package embeddedetcd

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logger is etcd's log: warnings and worse, on standard error.
type logger struct {
	zap   *zap.Logger
	level zap.AtomicLevel
}

// newLogger makes the log of an etcd on the directory.
func newLogger(dataDir string) (*logger, error) {
	level := zap.NewAtomicLevelAt(zapcore.WarnLevel)

	config := zap.NewProductionConfig()
	config.Level = level
	config.DisableStacktrace = true
	config.EncoderConfig.EncodeTime = zapcore.RFC3339TimeEncoder

	last := lastWords{dataDir: dataDir}

	made, err := config.Build(zap.WithFatalHook(last), zap.WithPanicHook(last))
	if err != nil {
		return nil, fmt.Errorf("make the log of etcd: %w", err)
	}

	return &logger{zap: made.Named("etcd"), level: level}, nil
}

// silence drops further messages after a requested stop: etcd reports each listener that closes as an error.
func (l *logger) silence() { l.level.SetLevel(zapcore.PanicLevel) }

// lastWords ends the process when etcd logs a fatal error, from whatever goroutine, and first logs what to do: etcd's
// own message is for its authors, and a panic would bury it below the stacks of all goroutines.
type lastWords struct{ dataDir string }

// OnWrite implements zapcore.CheckWriteHook.
func (l lastWords) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	reason := entry.Message

	for _, field := range fields {
		if err, ok := field.Interface.(error); ok {
			reason += ": " + err.Error()
		}
	}

	fmt.Fprintf(os.Stderr, "omni-apiserver ends, because its etcd on %s cannot go on (%s): %s\n", l.dataDir, reason, cmp.Or(remedy(reason), tryAgain))
	os.Exit(1)
}

// tryAgain is the remedy for unknown reasons.
const tryAgain = "start it again; if that happens each time, the data is damaged: restore a snapshot (omni-apiserver snapshot restore --help)"

// diskFails is the remedy for a disk that does not read or write.
const diskFails = "the disk fails: look at the volume and at its node, then start again; if the data is damaged, restore a snapshot"

// makeRoom is the remedy for a full disk.
const makeRoom = "enlarge the volume, or remove from it what nobody needs, such as old snapshots and " + replacedPrefix + "<time>; then start again"

// remedy says what to do about a fatal error, for people who know nothing of etcd; empty for an unknown reason.
func remedy(reason string) string {
	about := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(reason, word) })
	}

	switch {
	case about("invalid downgrade"):
		return "the data directory was used by a newer omni-apiserver: run that version again, or restore a snapshot from before its upgrade"
	case about("no space left on device", "disk quota exceeded"):
		return "the disk is full, and nothing that was acknowledged is lost: " + makeRoom
	case about("input/output error", "read-only file system"):
		return diskFails
	case about("failed to repair WAL"): // it copies the file first, and does not say what failed
		return "the end of its log is torn, and to mend it takes 64 MB of free space: " + makeRoom +
			"; only if that does not help, restore a snapshot (omni-apiserver snapshot restore --help)"
	case about("WAL", "wal:", "crc mismatch", "raft log corrupted"):
		return "its log is damaged: restore a snapshot (omni-apiserver snapshot restore --help)"
	}

	return ""
}
