package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer

	if err := run(t.Context(), nil, &out, t.Output()); err != nil {
		t.Fatal(err)
	}

	var names []string

	for _, path := range strings.Fields(out.String()) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o100 == 0 {
			t.Errorf("%s is not a program: %v", path, err)
		}

		names = append(names, filepath.Base(path))
	}

	if got, want := strings.Join(names, " "), "kube-apiserver kube-controller-manager kubectl etcd"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRunRefusesUnknownArguments(t *testing.T) {
	for _, args := range [][]string{{"kubernetes"}, {"omni", "again"}} {
		if err := run(t.Context(), args, t.Output(), t.Output()); err == nil {
			t.Errorf("arguments %q were accepted", args)
		}
	}
}
