package app

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// parse reads a command line into options. A serving certificate is given.
func parse(t *testing.T, args ...string) *Options {
	t.Helper()

	options := NewOptions()
	flags := pflag.NewFlagSet("omni-apiserver", pflag.ContinueOnError)

	for _, section := range options.Flags().FlagSets {
		flags.AddFlagSet(section)
	}

	if err := flags.Parse(append([]string{"--tls-cert-file=/tls.crt", "--tls-private-key-file=/tls.key"}, args...)); err != nil {
		t.Fatal(err)
	}

	return options
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"embedded", []string{"--etcd-data-dir=/data"}, ""},
		{"external", []string{"--etcd-servers=https://etcd:2379"}, ""},
		{"no certificate", []string{"--etcd-data-dir=/data", "--tls-cert-file="}, "--tls-cert-file and --tls-private-key-file: give both"},
		{"no key", []string{"--etcd-data-dir=/data", "--tls-private-key-file="}, "--tls-cert-file and --tls-private-key-file: give both"},
		{"no port", []string{"--etcd-data-dir=/data", "--secure-port=0"}, "--secure-port: 0 serves nobody; give a port"},
		{"neither", nil, "objects need a place: give --etcd-data-dir"},
		{"both", []string{"--etcd-data-dir=/data", "--etcd-servers=https://etcd:2379"}, "exclude each other"},
		{"hub ID", []string{"--etcd-data-dir=/data", "--hub-id=berlin-1"}, ""},
		{"hub ID that is no label", []string{"--etcd-data-dir=/data", "--hub-id=a b"}, "--hub-id: \"a b\" is not valid as the value of a label"},
		{"namespaces", []string{"--etcd-data-dir=/data", "--controller-namespaces=apps,infra"}, ""},
		{
			"not a namespace",
			[]string{"--etcd-data-dir=/data", "--controller-namespaces=apps,My Apps"},
			`--controller-namespaces: "My Apps" is not a namespace name`,
		},
		{"library flag", []string{"--etcd-data-dir=/data", "--goaway-chance=1"}, "--goaway-chance"},
		{"storage flag", []string{"--etcd-data-dir=/data", "--storage-backend=etcd2"}, "--storage-backend invalid"},
		{
			"unknown plugin",
			[]string{"--etcd-data-dir=/data", "--disable-admission-plugins=Nonsense"},
			`plugin "Nonsense" is unknown`,
		},
		{
			"quota too small",
			[]string{"--etcd-data-dir=/data", "--etcd-quota-backend-bytes=1000"},
			"--etcd-quota-backend-bytes: 1000 is not between 67108864 (64 MiB) and 8589934592 (8 GiB)",
		},
		{"quota too large", []string{"--etcd-data-dir=/data", "--etcd-quota-backend-bytes=8589934593"}, "--etcd-quota-backend-bytes"},
		{"no watch caches", []string{"--etcd-data-dir=/data", "--watch-cache=false"}, "every kind has a watch cache"},
		{"sizes of watch caches", []string{"--etcd-data-dir=/data", "--watch-cache-sizes=omniclusters.omni.texashpc.com#0"}, "every kind has a watch cache"},
		{"no snapshots", []string{"--etcd-data-dir=/data", "--etcd-snapshot-interval=0"}, ""},
		{
			"snapshots too often",
			[]string{"--etcd-data-dir=/data", "--etcd-snapshot-interval=1s"},
			"--etcd-snapshot-interval: 1s is below 1m0s; use 0 for no snapshots",
		},
		{"negative interval", []string{"--etcd-data-dir=/data", "--etcd-snapshot-interval=-1h"}, "--etcd-snapshot-interval"},
		{
			"no snapshot kept",
			[]string{"--etcd-data-dir=/data", "--etcd-snapshot-retention=0"},
			"--etcd-snapshot-retention: 0 is below 1; use --etcd-snapshot-interval=0",
		},
		{"no defragmentation", []string{"--etcd-data-dir=/data", "--etcd-defragment-interval=0"}, ""},
		{
			"defragmentation too often",
			[]string{"--etcd-data-dir=/data", "--etcd-defragment-interval=1s"},
			"--etcd-defragment-interval: 1s is below 1m0s",
		},
		{
			"snapshots of an external etcd",
			[]string{"--etcd-servers=https://etcd:2379", "--etcd-snapshot-interval=1h"},
			"have no effect on that of --etcd-servers",
		},
		{"own plugin off", []string{"--etcd-data-dir=/data", "--disable-admission-plugins=OmniClusterName"}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := parse(t, test.args...).Validate()

			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestCompleteSharesTheKubeconfig(t *testing.T) {
	tests := []struct {
		name                          string
		args                          []string
		authentication, authorization string
	}{
		{"in a cluster", nil, "", ""},
		{"one for all", []string{"--kubeconfig=all"}, "all", "all"},
		{"one of its own", []string{"--kubeconfig=all", "--authentication-kubeconfig=own"}, "own", "all"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			options := parse(t, test.args...)
			if err := options.Complete(); err != nil {
				t.Fatal(err)
			}

			if got := options.Authentication.RemoteKubeConfigFile; got != test.authentication {
				t.Errorf("authentication %q, want %q", got, test.authentication)
			}

			if got := options.Authorization.RemoteKubeConfigFile; got != test.authorization {
				t.Errorf("authorisation %q, want %q", got, test.authorization)
			}
		})
	}
}

func TestHelpStartsWithOurOwnFlags(t *testing.T) {
	command := NewCommand(t.Context())

	var help bytes.Buffer
	command.SetOut(&help)
	command.SetArgs([]string{"--help"})

	if err := command.Execute(); err != nil {
		t.Fatal(err)
	}

	position := 0

	for _, flag := range []string{
		"Omni flags:", "--controller-namespaces", "--etcd-data-dir", "--hub-id", "--management-cluster-name",
		"--require-deletion-confirmation", "--kubeconfig", "--secure-port", "--tls-cert-file",
		"--authentication-kubeconfig", "--authorization-kubeconfig", "--etcd-servers", "--audit-policy-file",
	} {
		found := strings.Index(help.String()[position:], flag)
		if found < 0 {
			t.Fatalf("%s is missing, or stands before the flags above it", flag)
		}

		position += found
	}
}

// Every flag of our own stands on the page of flags, in the table of our own.
func TestFlagsAreOnTheirPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/apiserver-flags.md")
	if err != nil {
		t.Fatal(err)
	}

	_, own, _ := strings.Cut(string(page), "\n## Our own\n")
	own, _, _ = strings.Cut(own, "\n## ")

	sections := NewOptions().Flags()
	sections.FlagSet("omni").VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden && !strings.Contains(own, "`--"+flag.Name+"`") {
			t.Errorf("--%s is not on the page", flag.Name)
		}
	})
}

func TestUnknownFlagIsNotBuriedInTheUsage(t *testing.T) {
	command := NewCommand(t.Context())

	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs([]string{"--bogus"})

	const want = "unknown flag: --bogus: see omni-apiserver --help"
	if err := command.Execute(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}

	if lines := strings.Count(out.String(), "\n"); lines > 2 {
		t.Errorf("%d lines of output:\n%.500s", lines, out.String())
	}
}

func TestRunFailsOnAnUnusableDirectory(t *testing.T) {
	options := parse(t, "--etcd-data-dir=/dev/null/etcd")

	if err := Run(t.Context(), options); err == nil || !strings.Contains(err.Error(), "make the etcd data directory") {
		t.Errorf("got %v", err)
	}
}

// The number of requests per connection has a limit, which a flag sets.
func TestStreamsPerConnection(t *testing.T) {
	for want, args := range map[int][]string{100: nil, 40: {"--http2-max-streams-per-connection=40"}} {
		if got := parse(t, args...).Serving.HTTP2MaxStreamsPerConnection; got != want {
			t.Errorf("%v: %d, want %d", args, got, want)
		}
	}
}

// Errors at the start name the file or the flag.
func TestConfigSaysWhatFails(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()

	_, port, _ := net.SplitHostPort(taken.Addr().String())
	embedded := "--etcd-data-dir=" + t.TempDir()

	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	_, freePort, _ := net.SplitHostPort(free.Addr().String())
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}

	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{
			"no certificate there",
			[]string{embedded, "--tls-cert-file=/nonexistent.crt", "--tls-private-key-file=" + text},
			`the certificate "/nonexistent.crt" and the key "` + text + `" (--tls-cert-file, --tls-private-key-file, --secure-port): open /nonexistent.crt`,
		},
		{
			"no certificate in it",
			[]string{embedded, "--bind-address=127.0.0.1", "--secure-port=" + freePort, "--tls-cert-file=" + text, "--tls-private-key-file=" + text},
			"--secure-port): tls: failed to find any PEM data in certificate input",
		},
		{
			"port taken",
			[]string{embedded, "--bind-address=127.0.0.1", "--secure-port=" + port},
			"--secure-port): failed to create listener: failed to listen on 127.0.0.1:" + port,
		},
		{
			"no file of etcd",
			[]string{"--etcd-servers=https://127.0.0.1:1", "--etcd-cafile=/nonexistent.crt"},
			"--etcd-cafile: open /nonexistent.crt: no such file or directory",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := parse(t, tc.args...).Config(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		})
	}
}

// A stop while the start waits for other servers is no failure.
func TestRunStopsWhileItStarts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()

	ctx, stop := context.WithCancel(ctx)
	time.AfterFunc(200*time.Millisecond, stop)

	if err := Run(ctx, parse(t, "--etcd-servers=http://127.0.0.1:1")); err != nil {
		t.Error(err)
	}
}

func TestWhereObjectsAre(t *testing.T) {
	for want, args := range map[string][]string{
		"the embedded etcd in /data":             {"--etcd-data-dir=/data"},
		"etcd at https://a:2379, https://b:2379": {"--etcd-servers=https://a:2379,https://b:2379"},
	} {
		if got := parse(t, args...).whereObjectsAre(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
