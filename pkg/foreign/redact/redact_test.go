package redact_test

import (
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

func TestLine(t *testing.T) {
	token := strings.Repeat("eyJhbGciOiJSUzI1NiJ9.", 10)

	for _, test := range []struct{ name, text, want string }{
		{"short text stays", "connection refused", "connection refused"},
		{"one line", "first\nsecond\tthird\x1b[31m", "first second third [31m"},
		{"what turns or hides text", "over\u202etxt.exe\u2066\u200b\u2028line \u009b31m é 語 👍", "over txt.exe line 31m é 語 👍"},
		{"a token goes", "bearer " + token + " refused", "bearer [removed] refused"},
		{"a PEM block goes", "x -----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- y", "x [removed] y"},
		{"an unfinished block goes", "x -----BEGIN PGP PRIVATE KEY BLOCK-----\nabc", "x [removed]"},
		{"our own port goes", "read tcp 127.0.0.1:53124->127.0.0.1:443: reset", "read tcp 127.0.0.1:443: reset"},
		{"which address was dialled first goes", "dial tcp 10.1.2.3:443: connect: connection refused", "dial tcp: connect: connection refused"},
		{"a lookup stays", "dial tcp: lookup omni on 10.96.0.10:53: no such host", "dial tcp: lookup omni on 10.96.0.10:53: no such host"},
		{
			"the time of the look goes", "x509: certificate has expired or is not yet valid: current time 2026-11-27T02:51:29Z is after 2026-11-20T00:00:00Z",
			"x509: certificate has expired or is not yet valid: current time is after 2026-11-20T00:00:00Z",
		},
		{"a digest stays", "sha256:" + strings.Repeat("a1", 32), "sha256:" + strings.Repeat("a1", 32)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := redact.Line(test.text); got != test.want {
				t.Errorf("Line gave %q, want %q", got, test.want)
			}
		})
	}
}

func TestLineIsBounded(t *testing.T) {
	got := redact.Line(strings.Repeat("é word ", 1000))
	if len(got) > redact.MaxBytes || !strings.HasSuffix(got, "...") {
		t.Errorf("Line gave %d bytes ending in %q", len(got), got[len(got)-10:])
	}
}
