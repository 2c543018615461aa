package omnicluster

import "testing"

func TestSecretsAreRemoved(t *testing.T) {
	const secret = "machine:\n  token: s3cr3t-t0ken-value\n  ca: {crt: \"LS0tLS1CRUdJTi\", pin: 48151, quoted: \"a\\\"b\\\"c-d\\\"e\"}\n"

	for name, test := range map[string]struct {
		text string
		want string
	}{
		"nothing of it":    {`invalid version "v1.99.0"`, `invalid version "v1.99.0"`},
		"a word of it":     {`unknown key "s3cr3t-t0ken-value"`, `unknown key "[removed]"`},
		"several":          {`bad LS0tLS1CRUdJTi and s3cr3t-t0ken-value`, `bad [removed] and [removed]`},
		"cut short":        {`unknown key "s3cr3t-t0ke...`, `unknown key "[removed]...`},
		"cut by YAML":      {"cannot unmarshal !!str `s3cr3t-...` into int", "cannot unmarshal !!str `[removed]...` into int"},
		"in the middle":    {`xx0ken-valuexx`, `xx[removed]xx`},
		"a short leaf":     {`48151 is no pin, 481516 neither`, `[removed] is no pin, 481516 neither`},
		"without quotes":   {`unexpected a"b"c-d"e`, `unexpected [removed]`},
		"with them again":  {`unexpected "a\"b\"c-d\"e"`, `unexpected [removed]`},
		"a key of its own": {`unknown: machine`, `unknown: machine`},
	} {
		t.Run(name, func(t *testing.T) {
			var s SecretTexts

			s.add([]byte(secret))
			s.add([]byte("{no: YAML"))

			if got := s.Clean(t.Context(), test.text); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestNoSecrets(t *testing.T) {
	var s SecretTexts

	if got := s.Clean(t.Context(), "as it is"); got != "as it is" {
		t.Error(got)
	}
}
