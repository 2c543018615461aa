package embeddedetcd_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/membershippb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

// lastWordsOf is the environment variable with the directory that TestStartInAProcess starts etcd on.
const lastWordsOf = "LAST_WORDS_OF"

// TestStartInAProcess is run by lastWords in a child process, because etcd may end the process.
func TestStartInAProcess(t *testing.T) {
	dir := os.Getenv(lastWordsOf)
	if dir == "" {
		return
	}

	if _, err := embeddedetcd.Start(t.Context(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	time.Sleep(requestTimeout)
}

// lastWords returns the output of a child process that ends while it starts etcd on the directory.
func lastWords(t *testing.T, dir string) string {
	t.Helper()

	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStartInAProcess$")
	command.Env = append(os.Environ(), lastWordsOf+"="+dir)

	out, err := command.CombinedOutput()

	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}

	return string(out)
}

// TestNewerVersionInTheLog: the last writes of a newer program may be only in the log, which etcd replays during its
// start.
func TestNewerVersionInTheLog(t *testing.T) {
	dir := t.TempDir()
	stop(t, start(t, dir))
	appendToLog(t, dir, &etcdserverpb.InternalRaftRequest{
		Header:            &etcdserverpb.RequestHeader{ID: 1},
		ClusterVersionSet: &membershippb.ClusterVersionSetRequest{Ver: "3.8.0"},
	})

	got := lastWords(t, dir)
	for _, want := range []string{"omni-apiserver ends, because its etcd on " + dir, "used by a newer omni-apiserver: run that version again"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in:\n%s", want, got)
		}
	}

	if strings.Contains(got, "goroutine ") {
		t.Errorf("a stack:\n%s", got)
	}
}

// TestDamagedLog: etcd repairs a torn end, but nothing before it.
func TestDamagedLog(t *testing.T) {
	dir := t.TempDir()
	server := start(t, dir)
	put(t, connect(t, server), "key", "value")
	stop(t, server)

	logs, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}

	damaged := content(t, logs[0])
	damaged[100] ^= 1
	write(t, logs[0], damaged)

	if _, err := embeddedetcd.Start(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "its log is damaged: restore a snapshot") {
		t.Errorf("got %v", err)
	}
}

// TestTornLog: etcd mends the end of its log and keeps a copy of what it was, which nothing would ever remove.
func TestTornLog(t *testing.T) {
	dir := t.TempDir()
	server := start(t, dir)
	put(t, connect(t, server), "key", "value")
	stop(t, server)

	log := filepath.Join(dir, "member", "wal", "0000000000000000-0000000000000000.wal")
	whole := bytes.TrimRight(content(t, log), "\x00")
	write(t, log, whole[:len(whole)-3])

	again := start(t, dir)
	defer stop(t, again)

	if value, _ := get(t, connect(t, again), "key"); value != "value" {
		t.Errorf("value %q", value)
	}

	if left, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.broken")); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestTornLogOfAFailedStart: before etcd runs again, the copy may be all that is left of the log.
func TestTornLogOfAFailedStart(t *testing.T) {
	dir := t.TempDir()
	server := start(t, dir)
	put(t, connect(t, server), snapshot.DataVersionKey, strconv.Itoa(snapshot.DataVersion+1))
	stop(t, server)

	torn := filepath.Join(dir, "member", "wal", "0000000000000000-0000000000000000.wal.broken")
	write(t, torn, []byte("the log of before"))

	if _, err := embeddedetcd.Start(t.Context(), dir); !errors.Is(err, snapshot.ErrNewerData) {
		t.Errorf("got %v", err)
	}

	if got := string(content(t, torn)); got != "the log of before" {
		t.Errorf("got %q", got)
	}
}

// TestEmptyLog: etcd does not expect one.
func TestEmptyLog(t *testing.T) {
	dir := t.TempDir()
	stop(t, start(t, dir))
	write(t, filepath.Join(dir, "member", "wal", "0000000000000000-0000000000000000.wal"), nil)

	// This runs in a child process, because goroutines that etcd started before the failure go on.
	if got := lastWords(t, dir); !strings.Contains(got, "the data is damaged: restore a snapshot") {
		t.Errorf("it says:\n%s", got)
	}
}

// appendToLog adds a request as if it had been committed.
func appendToLog(t *testing.T, dir string, request *etcdserverpb.InternalRaftRequest) {
	t.Helper()

	log, err := wal.Open(zap.NewNop(), filepath.Join(dir, "member", "wal"), &walpb.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()

	_, state, entries, err := log.ReadAll()
	if err != nil {
		t.Fatal(err)
	}

	data, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}

	last := entries[len(entries)-1].GetIndex() + 1
	state.Commit = new(last)

	if err := log.Save(state, []*raftpb.Entry{{Term: new(state.GetTerm()), Index: new(last), Type: raftpb.EntryNormal.Enum(), Data: data}}); err != nil {
		t.Fatal(err)
	}
}
