package app

import (
	"strings"
	"testing"
)

func TestWeakTLSIsRefused(t *testing.T) {
	for _, test := range []struct{ name, flag, want string }{
		{"default", "--etcd-data-dir=/data", ""},
		{"1.0", "--tls-min-version=VersionTLS10", "--tls-min-version: VersionTLS10 is not safe; give VersionTLS12 or VersionTLS13"},
		{"1.1", "--tls-min-version=VersionTLS11", "--tls-min-version: VersionTLS11 is not safe; give VersionTLS12 or VersionTLS13"},
		{"1.2", "--tls-min-version=VersionTLS12", ""},
		{"1.3", "--tls-min-version=VersionTLS13", ""},
		{"no version", "--tls-min-version=1.2", `--tls-min-version: unknown tls version "1.2"; give VersionTLS12 or VersionTLS13`},
		{"ciphers", "--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", ""},
		{"RC4", "--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA", "--tls-cipher-suites: TLS_RSA_WITH_RC4_128_SHA is not safe; leave it out"},
		{
			"no forward secrecy, among others", "--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_AES_128_GCM_SHA256",
			"--tls-cipher-suites: TLS_RSA_WITH_AES_128_GCM_SHA256 is not safe; leave it out",
		},
		{"no cipher", "--tls-cipher-suites=NONSENSE", `--tls-cipher-suites: "NONSENSE" is unknown`},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := parse(t, "--etcd-data-dir=/data", test.flag).Validate()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
