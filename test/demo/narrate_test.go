package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCommandLineCanBePasted(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"get", "ocl", "-o", "wide"}, "get ocl -o wide"},
		{[]string{"patch", "-p", `{"spec":{"suspend":true}}`}, `patch -p '{"spec":{"suspend":true}}'`},
		{[]string{"-o", "jsonpath={.status.plan}"}, "-o 'jsonpath={.status.plan}'"},
		{[]string{"a", ""}, "a ''"},
		{[]string{"it's"}, `'it'\''s'`},
	} {
		if got := commandLine(test.args); got != test.want {
			t.Errorf("%q: got %s, want %s", test.args, got, test.want)
		}
	}
}

func TestIndentLeavesEmptyLinesEmpty(t *testing.T) {
	if got, want := indent("a\n\n\nb"), "  a\n\n\n  b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestExamplesAreNamedFromTheWorkingDirectory(t *testing.T) {
	dir, err := examples()
	if err != nil {
		t.Fatal(err)
	}

	if want := filepath.Join("..", "..", "artifacts", "examples"); dir != want {
		t.Errorf("got %s, want %s", dir, want)
	}

	for _, file := range append(clusterExamples[:], "connection.yaml") {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
}

func TestClusterFiles(t *testing.T) {
	want := " -f examples/cluster.yaml -f examples/controlplane.yaml -f examples/workers-static.yaml" +
		" -f examples/workers-class.yaml -f examples/machine.yaml"
	if got := clusterFiles("examples"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
