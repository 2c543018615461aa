package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// parse reads a command line into options.
func parse(t *testing.T, args ...string) *Options {
	t.Helper()

	options := NewOptions()
	flags := pflag.NewFlagSet("omni-apiserver", pflag.ContinueOnError)

	for _, section := range options.Flags().FlagSets {
		flags.AddFlagSet(section)
	}

	if err := flags.Parse(args); err != nil {
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
		{"neither", nil, "objects need a place: give --etcd-data-dir"},
		{"both", []string{"--etcd-data-dir=/data", "--etcd-servers=https://etcd:2379"}, "exclude each other"},
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
		"Omni flags:", "--controller-namespaces", "--etcd-data-dir", "--management-cluster-name",
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
