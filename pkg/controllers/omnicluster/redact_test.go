package omnicluster

import (
	"strings"
	"testing"
)

func TestRedactor(t *testing.T) {
	const secret = "machine:\n  token: s3cr3t-t0ken-value\n  ca: {crt: \"LS0tLS1CRUdJTi\"}\n"

	for name, test := range map[string]struct {
		text string
		want string
	}{
		"nothing of it": {`invalid version "v1.99.0"`, `invalid version "v1.99.0"`},
		"a word of it":  {`unknown key "s3cr3t-t0ken-value"`, `unknown key "[removed]"`},
		"several":       {`bad LS0tLS1CRUdJTi and s3cr3t-t0ken-value`, `bad [removed] and [removed]`},
		"cut short":     {`unknown key "s3cr3t-t0ke...`, `the details are not shown, because they quote the content of Secret patch`},
		"in the middle": {`xx0ken-valuexx`, `the details are not shown, because they quote the content of Secret patch`},
	} {
		t.Run(name, func(t *testing.T) {
			var r redactor

			r.add("patch", secret)
			r.add("patch", secret)

			if got := r.clean(test.text); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestRedactorWithoutSecrets(t *testing.T) {
	var r redactor

	if got := r.clean("as it is"); got != "as it is" {
		t.Error(got)
	}
}

// Whatever an error quotes, no recognisable piece of the value remains.
func FuzzRedactor(f *testing.F) {
	f.Add("machine: {token: abcdefghijkl}", "before ", " after", 0, 10)
	f.Add("a: \"quoted, text\"", "", "", 3, 12)

	f.Fuzz(func(t *testing.T, value, before, after string, from, to int) {
		if from < 0 || to > len(value) || from > to {
			return
		}

		var r redactor

		r.add("s", value)

		got := r.clean(before + value[from:to] + after)
		if strings.HasPrefix(got, "the details are not shown") {
			return
		}

		if sharesWindow(got, value) {
			t.Errorf("%q shows a piece of %q", got, value)
		}
	})
}
