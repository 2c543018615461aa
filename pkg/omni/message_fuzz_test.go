package omni_test

import (
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// FuzzMessage checks that any error text of Omni becomes one bounded line.
func FuzzMessage(f *testing.F) {
	f.Add("rpc error: code = InvalidArgument desc = failed to validate: no such class")
	f.Add("a\nb\x00\xff" + strings.Repeat("x", 2000))

	f.Fuzz(func(t *testing.T, text string) {
		foreigntest.WantAllocated(t, uint64(256*len(text))+1<<20, func() {
			if said := redact.Bounded(omni.Sanitize(text), redact.MaxBytes); len(said) > redact.MaxBytes || strings.ContainsAny(said, "\n\r") {
				t.Errorf("%q", said)
			}
		})
	})
}
