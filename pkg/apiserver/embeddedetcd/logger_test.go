package embeddedetcd

import (
	"strings"
	"testing"
)

func TestRemedy(t *testing.T) {
	for reason, want := range map[string]string{
		"invalid downgrade; server version is lower than determined cluster version":                     "used by a newer omni-apiserver",
		"failed to save Raft hard state and entries: write /d/member/wal/0.wal: no space left on device": "the disk is full",
		"failed to save Raft hard state and entries: sync /d/member/wal/0.wal: input/output error":       "the disk fails",
		"failed to read WAL, cannot be repaired: walpb: crc mismatch":                                    "its log is damaged",
		"tocommit(9) is out of range [lastIndex(8)]. Was the raft log corrupted, truncated, or lost?":    "its log is damaged",
		"failed to repair WAL: unexpected EOF":                                                           "the end of its log is torn, and to mend it takes 64 MB of free space",
		"permission denied":                                                                              "",
	} {
		if got := remedy(reason); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: got %q, want %q in it", reason, got, want)
		}
	}
}
