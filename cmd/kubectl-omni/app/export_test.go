package app

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"omni.texashpc.com/omni-cluster-operator/pkg/export"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// canaryKey stands for a key; it must never be shown.
const canaryKey = "Y2FuYXJ5LWtleQ=="

func parseExport(t *testing.T, args ...string) *exportOptions {
	t.Helper()

	options := &exportOptions{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	options.addFlags(flags)

	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}

	return options
}

func TestExportFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want []string // in the error; none: no error
	}{
		"one cluster":     {[]string{"--endpoint=https://o", "--cluster=a"}, nil},
		"two clusters":    {[]string{"--endpoint=https://o", "--cluster=a", "--cluster=b", "--namespace=fleet"}, nil},
		"all":             {[]string{"--endpoint=https://o", "--all", "-o", "yaml", "--with-connection", "--secret=a.b"}, nil},
		"a Secret alone":  {[]string{"--endpoint=https://o", "--all", "--secret=a"}, []string{"--secret is for the OmniConnection", "--with-connection"}},
		"nothing":         {nil, []string{"--endpoint is required", "--cluster NAME"}},
		"both":            {[]string{"--endpoint=https://o", "--all", "--cluster=a"}, []string{"one of --cluster NAME"}},
		"CA and no check": {[]string{"--endpoint=https://o", "--all", "--ca-file=a", "--insecure-skip-tls-verify"}, []string{"exclude each other"}},
		"another format":  {[]string{"--endpoint=https://o", "--all", "--output=json"}, []string{`--output: "json" is not known`}},
		"no connection":   {[]string{"--endpoint=https://o", "--all", "--connection="}, []string{`--connection: "" is not a name`}},
		"a path":          {[]string{"--endpoint=https://o", "--all", "--connection=../a"}, []string{`--connection: "../a" is not a name`}},
		"wrong namespace": {[]string{"--endpoint=https://o", "--all", "--namespace=a.b"}, []string{`--namespace: "a.b" is not a name`}},
		"wrong secret":    {[]string{"--endpoint=https://o", "--all", "--secret=A"}, []string{`--secret: "A" is not a name`}},
		"many mistakes":   {[]string{"--output=json", "--secret=A"}, []string{"--endpoint", "--cluster", "--output", "--secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := parseExport(t, test.args...).validate()
			if (err != nil) != (len(test.want) > 0) {
				t.Fatalf("error %v", err)
			}

			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in %q", want, err)
				}
			}
		})
	}
}

func TestWhatExportFlagsReferTo(t *testing.T) {
	dir := t.TempDir()
	keyFile, caFile := filepath.Join(dir, "key"), filepath.Join(dir, "ca.pem")

	for path, content := range map[string]string{keyFile: canaryKey + "\n", caFile: "CA"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	t.Setenv(keyEnvironment, "")

	options := parseExport(t, "--endpoint=https://o", "--cluster=a", "--service-account-key-file="+keyFile, "--ca-file="+caFile)

	got, err := options.complete()
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(export.Options{
		Endpoint: "https://o", Key: []byte(canaryKey + "\n"), KeySource: "--service-account-key-file", CABundle: []byte("CA"),
		Clusters: []string{"a"}, Connection: "omni", Secret: "omni-service-account",
	}, got); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}

	t.Setenv(keyEnvironment, "from the environment")

	// A file that is named takes precedence over the environment.
	if got, err = options.complete(); err != nil || got.KeySource != "--service-account-key-file" {
		t.Errorf("key of %s (%v)", got.KeySource, err)
	}

	got, err = parseExport(t, "--connection=west", "--with-connection", "--secret=mine").complete()
	if err != nil || got.KeySource != keyEnvironment || string(got.Key) != "from the environment" || got.Secret != "mine" || !got.WithConnection {
		t.Errorf("%v, key of %s, secret %s, with the connection: %t", err, got.KeySource, got.Secret, got.WithConnection)
	}
}

func TestExportKeyErrors(t *testing.T) {
	sim, err := omnisim.Start(omnisim.Options{Manual: true})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, sim.CAPEM(), 0o600); err != nil {
		t.Fatal(err)
	}

	stranger, err := sim.CreateServiceAccount("stranger", omnisim.RoleNone, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	expired, err := sim.CreateServiceAccount("late", omnisim.RoleReader, -time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct {
		key  string
		want []string
	}{
		"nothing":            {" \n", []string{"is empty"}},
		"an environment":     {"OMNI_ENDPOINT=https://o\nOMNI_SERVICE_ACCOUNT_KEY=" + canaryKey + "\n", []string{"environment block"}},
		"no key":             {canaryKey, []string{"does not hold the expected JSON document"}},
		"two lines":          {canaryKey + "\n" + canaryKey, []string{"several lines"}},
		"too much":           {strings.Repeat(canaryKey, 1<<17), []string{"base64"}},
		"an expired key":     {expired, []string{"has expired"}},
		"a key without role": {stranger, []string{"Reader is needed"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(file, []byte(test.key), 0o600); err != nil {
				t.Fatal(err)
			}

			stdout, stderr, err := newSession(t).run("export", "--endpoint="+sim.Endpoint(), "--ca-file="+ca, "--all", "--service-account-key-file="+file)
			if err == nil || stdout != "" || stderr != "" {
				t.Fatalf("error %v, printed %q and %q", err, stdout, stderr)
			}

			for _, want := range append(test.want, "--service-account-key-file: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in %q", want, err)
				}
			}

			if strings.Contains(err.Error(), strings.TrimSpace(test.key)) && test.key != " \n" || strings.Contains(err.Error(), canaryKey) {
				t.Errorf("the key is shown: %v", err)
			}
		})
	}

	t.Setenv(keyEnvironment, "")

	for name, test := range map[string]struct{ file, ca, want string }{
		"missing key file": {"/nowhere/key", ca, "--service-account-key-file: open /nowhere/key: no such file or directory"},
		"a directory":      {"/", ca, "--service-account-key-file: read /: is a directory"},
		"no key at all":    {"", ca, "--service-account-key-file (or OMNI_SERVICE_ACCOUNT_KEY of the environment) is required"},
		"missing CA":       {os.DevNull, "/nowhere/ca", "--ca-file: open /nowhere/ca: no such file or directory"},
	} {
		_, _, err := newSession(t).run("export", "--endpoint="+sim.Endpoint(), "--ca-file="+test.ca, "--all", "--service-account-key-file="+test.file)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// filesOf reads a directory.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()

	files := map[string]string{}

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}

	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}

		files[entry.Name()] = string(text)
	}

	return files
}

func TestExportFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "directory")
	result := &export.Result{
		Connection: &export.File{Name: "connection-omni", Text: []byte("connection")},
		Clusters:   []export.File{{Name: "cluster-a", Text: []byte("cluster a")}, {Name: "cluster-b", Text: []byte("cluster b")}},
	}

	var stderr bytes.Buffer
	if err := writeFiles(dir, result, &stderr); err != nil {
		t.Fatal(err)
	}

	want := map[string]string{"connection-omni.yaml": "connection", "cluster-a.yaml": "cluster a", "cluster-b.yaml": "cluster b"}
	if diff := cmp.Diff(want, filesOf(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	lines := "wrote " + filepath.Join(dir, "connection-omni.yaml") + "\nwrote " + filepath.Join(dir, "cluster-a.yaml") + "\nwrote " + filepath.Join(dir, "cluster-b.yaml") + "\n"
	if stderr.String() != lines {
		t.Errorf("printed %q, want %q", stderr.String(), lines)
	}

	// The content may be secret.
	for name, wantMode := range map[string]fs.FileMode{"": 0o750, "cluster-a.yaml": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm()&^wantMode != 0 {
			t.Errorf("%q: %v, mode %v", name, err, info.Mode())
		}
	}

	// A second run with the same content succeeds.
	if err := writeFiles(dir, result, &stderr); err != nil {
		t.Error(err)
	}

	// One that is not asked for is not looked at.
	without := &export.Result{Clusters: result.Clusters}
	if err := errors.Join(os.Remove(filepath.Join(dir, "connection-omni.yaml")), writeFiles(dir, without, io.Discard)); err != nil {
		t.Error(err)
	}

	if _, err := os.Stat(filepath.Join(dir, "connection-omni.yaml")); err == nil {
		t.Error("a connection was written that is not in the export")
	}

	if err := writeFiles(dir, result, io.Discard); err != nil {
		t.Error(err)
	}

	// Edited files stop the whole export, and the error names each of them.
	result.Connection.Text, result.Clusters[0].Text = []byte("other"), []byte("other")
	result.Clusters = append(result.Clusters, export.File{Name: "cluster-c", Text: []byte("cluster c")})

	err := writeFiles(dir, result, &stderr)
	if err == nil || !strings.Contains(err.Error(), "connection-omni.yaml is there with another content") || !strings.Contains(err.Error(), "cluster-a.yaml is there") {
		t.Errorf("error %v", err)
	}

	if diff := cmp.Diff(want, filesOf(t, dir)); diff != "" {
		t.Errorf("files after a refusal (-want +got):\n%s", diff)
	}
}

func TestExportFilesThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	if err := os.Mkdir(filepath.Join(dir, "cluster-a.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}

	result := &export.Result{Clusters: []export.File{{Name: "cluster-a"}}}

	for name, path := range map[string]string{"a file in the way": filepath.Join(dir, "file"), "a directory in the way": dir} {
		if err := writeFiles(path, result, &bytes.Buffer{}); err == nil || !strings.HasPrefix(err.Error(), "--output-dir: ") {
			t.Errorf("%s: %v", name, err)
		}
	}

	// A failed attempt leaves nothing behind.
	if diff := cmp.Diff([]string{"cluster-a.yaml", "file"}, namesIn(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func namesIn(t *testing.T, dir string) []string {
	t.Helper()

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}

	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}

	return names
}
