package main

import "testing"

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
