package app

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
)

// twoHubs is a kubeconfig with two management clusters and two users.
const twoHubs = `apiVersion: v1
kind: Config
clusters:
- {name: prod, cluster: {server: "https://prod.example"}}
- {name: staging, cluster: {server: "https://staging.example"}}
users:
- {name: admin, user: {token: of-admin}}
- {name: reader, user: {token: of-reader}}
contexts:
- {name: prod, context: {cluster: prod, user: admin}}
- {name: staging, context: {cluster: staging, user: reader}}
current-context: prod
`

// roundTripper answers requests in place of a network.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// moved is what a command of the group Move did: how it wanted to reach the management cluster, and its first request there.
type moved struct {
	config  *rest.Config
	request *http.Request
	err     error
}

// move types a command of the group Move. No request is answered.
func move(t *testing.T, args ...string) moved {
	t.Helper()

	found := moved{}
	flags := genericclioptions.NewConfigFlags(true)
	flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		found.config = config
		config.Wrap(func(http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				if found.request == nil {
					found.request = request
				}

				return nil, errors.New("nobody answers here")
			})
		})

		return config
	}

	command := (&tool{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}, flags: flags}).command()
	command.SetArgs(args)
	found.err = command.ExecuteContext(t.Context())

	return found
}

func (m moved) host() string { return m.request.URL.Host }

func header(name string) func(moved) string {
	return func(m moved) string { return m.request.Header.Get(name) }
}

// migrate writes with the rights of whoever runs it: a flag that it did not heed would make it change another management
// cluster than the one that was named, or with more rights.
func TestMigrateHeedsConnectionFlags(t *testing.T) {
	directory := t.TempDir()
	kubeconfig, other := filepath.Join(directory, "config"), filepath.Join(directory, "other")
	t.Setenv("KUBECONFIG", kubeconfig)

	for path, text := range map[string]string{kubeconfig: twoHubs, other: strings.Replace(twoHubs, "current-context: prod", "current-context: staging", 1)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	tests := map[string]struct {
		args    []string
		effect  func(moved) string
		want    string
		refused string // part of the error; nothing is asked then
	}{
		"kubeconfig":               {args: []string{"--kubeconfig", other}, effect: moved.host, want: "staging.example"},
		"context":                  {args: []string{"--context", "staging"}, effect: moved.host, want: "staging.example"},
		"cluster":                  {args: []string{"--cluster", "staging"}, effect: moved.host, want: "staging.example"},
		"server":                   {args: []string{"-s", "https://third.example"}, effect: moved.host, want: "third.example"},
		"user":                     {args: []string{"--user", "reader"}, effect: header("Authorization"), want: "Bearer of-reader"},
		"token":                    {args: []string{"--token", "given"}, effect: header("Authorization"), want: "Bearer given"},
		"as":                       {args: []string{"--as", "reader"}, effect: header("Impersonate-User"), want: "reader"},
		"as-group":                 {args: []string{"--as", "reader", "--as-group", "readers"}, effect: header("Impersonate-Group"), want: "readers"},
		"as-uid":                   {args: []string{"--as", "reader", "--as-uid", "7"}, effect: header("Impersonate-Uid"), want: "7"},
		"as-user-extra":            {args: []string{"--as", "reader", "--as-user-extra", "team=a"}, effect: header("Impersonate-Extra-Team"), want: "a"},
		"tls-server-name":          {args: []string{"--tls-server-name", "hub"}, effect: func(m moved) string { return m.config.ServerName }, want: "hub"},
		"insecure-skip-tls-verify": {args: []string{"--insecure-skip-tls-verify"}, effect: when(func(m moved) bool { return m.config.Insecure }), want: "yes"},
		"disable-compression":      {args: []string{"--disable-compression"}, effect: when(func(m moved) bool { return m.config.DisableCompression }), want: "yes"},
		"proxy-url":                {args: []string{"--proxy-url", "http://proxy.example"}, effect: proxyOf, want: "http://proxy.example"},
		"certificate-authority":    {args: []string{"--certificate-authority", "/nowhere/ca"}, refused: "/nowhere/ca"},
		"client-certificate":       {args: []string{"--client-certificate", "/nowhere/cert"}, refused: "/nowhere/cert"},
		"client-key":               {args: []string{"--client-certificate", kubeconfig, "--client-key", "/nowhere/key"}, refused: "/nowhere/key"},
		"namespace":                {args: []string{"-n", "fleet"}, refused: "migrate does not use --namespace, it works on the whole management cluster and bounds its requests itself: leave the flag out"},
		"request-timeout":          {args: []string{"--request-timeout", "5s"}, refused: "migrate does not use --request-timeout"},
		"cache-dir":                {args: []string{"--cache-dir", "/nowhere"}, refused: "migrate does not use --cache-dir"},
	}

	for flag, test := range tests {
		for _, command := range [][]string{{"migrate", "plan"}, {"migrate", "run", "--yes", "--backup", filepath.Join(t.TempDir(), "backup")}} {
			done := move(t, append(command, test.args...)...)

			switch {
			case done.err == nil:
				t.Errorf("%v --%s succeeds", command, flag)
			case test.refused != "":
				if done.request != nil || !strings.Contains(done.err.Error(), test.refused) {
					t.Errorf("%v --%s: %v, want %q; request %v", command, flag, done.err, test.refused, done.request)
				}
			case done.request == nil:
				t.Errorf("%v --%s: %v", command, flag, done.err)
			case test.effect(done) != test.want:
				t.Errorf("%v --%s: %q, want %q", command, flag, test.effect(done), test.want)
			}
		}
	}

	eachInherited(t, "run", func(flag *pflag.Flag) {
		if _, is := tests[flag.Name]; !is {
			t.Errorf("nobody knows whether migrate run heeds --%s", flag.Name)
		}
	})
}

func when(is func(moved) bool) func(moved) string {
	return func(m moved) string {
		if is(m) {
			return "yes"
		}

		return "no"
	}
}

func proxyOf(m moved) string {
	if m.config.Proxy == nil {
		return ""
	}

	address, err := m.config.Proxy(m.request)
	if err != nil {
		return err.Error()
	}

	return address.String()
}

// eachInherited shows the flags of kubectl that a command of the group Move has.
func eachInherited(t *testing.T, name string, see func(*pflag.Flag)) {
	t.Helper()

	words := map[string][]string{"run": {"migrate", "run"}, "export": {"export"}}[name]

	command, _, err := NewCommand(genericiooptions.NewTestIOStreamsDiscard()).Find(words)
	if err != nil || command.Name() != name {
		t.Fatal(command.Name(), err)
	}

	seen := 0

	command.InheritedFlags().VisitAll(func(flag *pflag.Flag) {
		seen++

		see(flag)
	})

	if seen < 10 {
		t.Errorf("%s has only %d flags of kubectl", name, seen)
	}
}

// export asks Omni and no management cluster. Whoever names one expects something of it.
func TestExportRefusesConnectionFlags(t *testing.T) {
	own := []string{"export", "--endpoint", "https://omni.example", "--cluster", "edge-01", "-n", "fleet", "--service-account-key-file", "/nowhere/key"}

	if done := move(t, own...); done.err == nil || !strings.Contains(done.err.Error(), "/nowhere/key") {
		t.Errorf("with flags of its own: %v", done.err)
	}

	eachInherited(t, "export", func(flag *pflag.Flag) {
		value := "x"
		if flag.Value.Type() == "bool" {
			value = "true"
		}

		want := "export does not use --" + flag.Name + ", it asks the Omni of --endpoint and no management cluster: leave the flag out"
		if done := move(t, append(own, "--"+flag.Name+"="+value)...); done.err == nil || done.err.Error() != want {
			t.Errorf("--%s: %v, want %q", flag.Name, done.err, want)
		}
	})
}

// Without the flag one request is bounded all the same.
func TestRequestTimeout(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	for given, want := range map[string]string{"0": "30s", "5s": "5s", "2m": "2m0s"} {
		flags := genericclioptions.NewConfigFlags(true)
		server := "https://hub.example"
		flags.Timeout, flags.APIServer = &given, &server

		config, err := (&tool{flags: flags}).config()
		if err != nil || config.Timeout.String() != want {
			t.Errorf("%s: %v, %v", given, config, err)
		}
	}
}
