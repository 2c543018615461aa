package exportcommand

import (
	"bytes"
	"context"
	"io"
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

// canary stands for a key; it must never be shown.
const canary = "Y2FuYXJ5LWtleQ=="

func parseExport(t *testing.T, args ...string) *Options {
	t.Helper()

	options := &Options{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	options.AddFlags(flags)

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
			err := parseExport(t, test.args...).Validate()
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

	for path, content := range map[string]string{keyFile: canary + "\n", caFile: "CA"} {
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
		Endpoint: "https://o", Key: []byte(canary + "\n"), KeySource: "--service-account-key-file", CABundle: []byte("CA"),
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

// runCommand runs the subcommand with all its parts, and returns what it printed.
func runCommand(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	command := New(ctx)

	var out, errOut bytes.Buffer

	command.SetArgs(args)
	command.SetOut(&out)
	command.SetErr(&errOut)

	err = command.Execute()

	return out.String(), errOut.String(), err
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
		"an environment":     {"OMNI_ENDPOINT=https://o\nOMNI_SERVICE_ACCOUNT_KEY=" + canary + "\n", []string{"environment block"}},
		"no key":             {canary, []string{"does not hold the expected JSON document"}},
		"two lines":          {canary + "\n" + canary, []string{"several lines"}},
		"too much":           {strings.Repeat(canary, 1<<17), []string{"base64"}},
		"an expired key":     {expired, []string{"has expired"}},
		"a key without role": {stranger, []string{"Reader is needed"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(file, []byte(test.key), 0o600); err != nil {
				t.Fatal(err)
			}

			stdout, stderr, err := runCommand(t.Context(), "--endpoint="+sim.Endpoint(), "--ca-file="+ca, "--all", "--service-account-key-file="+file)
			if err == nil || stdout != "" || stderr != "" {
				t.Fatalf("error %v, printed %q and %q", err, stdout, stderr)
			}

			for _, want := range append(test.want, "--service-account-key-file: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in %q", want, err)
				}
			}

			if strings.Contains(err.Error(), strings.TrimSpace(test.key)) && test.key != " \n" || strings.Contains(err.Error(), canary) {
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
		_, _, err := runCommand(t.Context(), "--endpoint="+sim.Endpoint(), "--ca-file="+test.ca, "--all", "--service-account-key-file="+test.file)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
