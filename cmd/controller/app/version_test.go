package app

import (
	"bytes"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	command := NewCommand(t.Context())

	var out bytes.Buffer
	command.SetOut(&out)
	command.SetArgs([]string{"--version"})

	if err := command.Execute(); err != nil {
		t.Fatal(err)
	}

	if !strings.HasPrefix(out.String(), "omni-controller version dev (commit ") {
		t.Errorf("got %q", out.String())
	}

	if flag := command.Flags().ShorthandLookup("v"); flag == nil || flag.Name != "v" {
		t.Errorf("-v is %+v, want the verbosity of the log", flag)
	}
}
