package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
	"omni.texashpc.com/omni-cluster-operator/test/etcdtest"
)

// execute runs a command line and returns its standard output.
func execute(t *testing.T, in io.Reader, args ...string) (string, error) {
	t.Helper()

	var out, errOut bytes.Buffer

	command := NewCommand(t.Context())
	command.SetIn(in)
	command.SetOut(&out)
	command.SetErr(&errOut)
	command.SetArgs(args)
	command.SilenceErrors = true
	err := command.Execute()

	return out.String(), err
}

func mustExecute(t *testing.T, in io.Reader, args ...string) string {
	t.Helper()

	out, err := execute(t, in, args...)
	if err != nil {
		t.Fatal(err)
	}

	return out
}

// TestSnapshotCommands does what an operator does: save, inspect, restore, with files and with streams.
func TestSnapshotCommands(t *testing.T) {
	dir := t.TempDir()
	etcdtest.Start(t, dir)

	path := filepath.Join(t.TempDir(), "saved.db")
	saved := mustExecute(t, nil, "snapshot", "save", path, "--etcd-data-dir="+dir)

	if looked := mustExecute(t, nil, "snapshot", "status", path); looked != saved || !strings.HasPrefix(looked, "WRITTEN") || !strings.Contains(looked, path) {
		t.Errorf("save printed\n%s\nstatus printed\n%s", saved, looked)
	}

	var infos []snapshot.Info
	if err := json.Unmarshal([]byte(mustExecute(t, nil, "snapshot", "status", "-o", "json", path)), &infos); err != nil {
		t.Fatal(err)
	}

	if len(infos) != 1 || infos[0].Keys != 1 || infos[0].DataVersion != 1 {
		t.Errorf("status %+v", infos)
	}

	stream := mustExecute(t, nil, "snapshot", "save", "-", "--etcd-data-dir="+dir)
	restored := filepath.Join(t.TempDir(), "restored")

	if out := mustExecute(t, strings.NewReader(stream), "snapshot", "restore", "-", "--etcd-data-dir="+restored); !strings.Contains(out, "Restored 1 keys") {
		t.Errorf("restore printed %s", out)
	}

	if _, err := execute(t, nil, "snapshot", "restore", path, "--etcd-data-dir="+restored); err == nil || !strings.Contains(err.Error(), "--replace") {
		t.Errorf("restore over data: %v", err)
	}

	if out := mustExecute(t, nil, "snapshot", "restore", path, "--etcd-data-dir="+restored, "--replace"); !strings.Contains(out, "The data of before is in "+restored) {
		t.Errorf("restore printed %s", out)
	}

	entries, err := filepath.Glob(filepath.Join(restored, ".omni*"))
	if diff := cmp.Diff([]string(nil), entries); err != nil || diff != "" {
		t.Error(err, diff)
	}

	etcdtest.Start(t, restored)
}

func TestSnapshotStatusOfADirectory(t *testing.T) {
	dir := t.TempDir()
	etcdtest.Start(t, dir)

	snapshots := t.TempDir()
	mustExecute(t, nil, "snapshot", "save", filepath.Join(snapshots, "omni-20261121T000000Z.db"), "--etcd-data-dir="+dir)

	if err := os.WriteFile(filepath.Join(snapshots, "omni-20261121T120000Z.db"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}

	out, err := execute(t, nil, "snapshot", "status", snapshots)
	if err == nil || !strings.Contains(err.Error(), "omni-20261121T120000Z.db: there is no checksum") {
		t.Errorf("error %v", err)
	}

	if strings.Count(out, "\n") != 2 || !strings.Contains(out, "omni-20261121T000000Z.db") {
		t.Errorf("output\n%s", out)
	}
}

func TestSnapshotMistakes(t *testing.T) {
	empty := t.TempDir()

	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no source", []string{"save", "x"}, "Give --etcd-data-dir or --etcd-servers"},
		{"two sources", []string{"save", "x", "--etcd-data-dir=/d", "--etcd-servers=https://e"}, "exclude each other"},
		{"no time", []string{"save", "x", "--etcd-data-dir=/d", "--timeout=0"}, "--timeout must be above 0"},
		{"no server", []string{"save", "x", "--etcd-data-dir=" + empty}, "no omni-apiserver runs with --etcd-data-dir=" + empty},
		{"no file", []string{"save", "--etcd-data-dir=/d"}, "accepts 1 arg(s), received 0"},
		{"no target", []string{"restore", "x"}, "Give the --etcd-data-dir of the server"},
		{"no such file", []string{"restore", filepath.Join(empty, "x"), "--etcd-data-dir=" + empty}, "no such file"},
		{"status of nothing", []string{"status", filepath.Join(empty, "x")}, "no such file"},
		{"status of an empty directory", []string{"status", empty}, "there are no scheduled snapshots in " + empty},
		{"format", []string{"status", empty, "-o", "yaml"}, `--output: "yaml" is neither table nor json`},
		{"flag", []string{"save", "--bogus"}, "unknown flag: --bogus: see omni-apiserver snapshot save --help"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := execute(t, nil, append([]string{"snapshot"}, test.args...)...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}

// TestSnapshotHelpIsItsOwn: the help does not have the server's flags.
func TestSnapshotHelpIsItsOwn(t *testing.T) {
	help := mustExecute(t, nil, "snapshot", "save", "--help")
	if strings.Contains(help, "--secure-port") || !strings.Contains(help, "--etcd-cafile") {
		t.Errorf("help:\n%s", help)
	}
}

// TestRestoreOfAnotherPrefix: a server with the default prefix would start empty, so the restore says so.
func TestRestoreOfAnotherPrefix(t *testing.T) {
	dir := t.TempDir()
	etcd := etcdtest.Start(t, dir)

	client, err := etcd.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	for _, step := range []struct{ key, want string }{
		{"/omni-apiserver/omni.texashpc.com/omniclusters/a/one", ""},
		{"/registry/omni.texashpc.com/omniclusters/a/one", "Caution: it has objects below /registry. omni-apiserver serves those below /omni-apiserver"},
	} {
		if _, err := client.Put(t.Context(), step.key, "{}"); err != nil {
			t.Fatal(err)
		}

		path := filepath.Join(t.TempDir(), "saved.db")
		mustExecute(t, nil, "snapshot", "save", path, "--etcd-data-dir="+dir)

		out := mustExecute(t, nil, "snapshot", "restore", path, "--etcd-data-dir="+t.TempDir())
		if !strings.Contains(out, step.want) || strings.Contains(out, "Caution") != (step.want != "") {
			t.Errorf("after %s, restore printed\n%s", step.key, out)
		}
	}
}

// TestRestoreInterrupted: a restore from standard input, which may never end, can be interrupted.
func TestRestoreInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())

	// Never closed: the restore waits until the process ends.
	reader, writer := io.Pipe()

	command := NewCommand(ctx)
	command.SetIn(reader)
	command.SetArgs([]string{"snapshot", "restore", "-", "--etcd-data-dir=" + t.TempDir()})
	command.SilenceErrors = true

	go func() {
		_, _ = writer.Write([]byte("the begin of a snapshot"))
		cancel()
	}()

	if err := command.Execute(); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("got %v", err)
	}
}
