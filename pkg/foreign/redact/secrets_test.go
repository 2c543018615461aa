package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

func TestSecrets(t *testing.T) {
	secrets := redact.Of("hunter", "hunter2-the-real-password", "first line\nsecond-line\npin99", `can"ar\y<4>'s`, "48151623", "abc", "tr0ub", "a+b c/d&e=f", "päss😀wörd")

	for given, want := range map[string]string{
		"nothing of it, abc":                                "nothing of it, abc",
		"denied: hunter2-the-real-password":                 "denied: [removed]",
		"hunter, hunters and hunter2":                       "[removed], hunters and hunter2",
		"cut: hunter2-the-re...":                            "cut: [removed]...",
		"cut by YAML: `hunter2...` into int":                "cut by YAML: `[removed]...` into int",
		"in the middle: xxthe-real-xx":                      "in the middle: xx[removed]xx",
		"folded: first   line second-line":                  "folded: [removed]",
		"a short line: pin99.":                              "a short line: [removed].",
		`JSON {"a":"can\"ar\\y\u003c4\u003e's"}`:            `JSON {"a":"[removed]"}`,
		`quoted JSON "{\"a\":\"can\\\"ar\\\\y<4>'s\"}"`:     `quoted JSON "{\"a\":\"[removed]\"}"`,
		`YAML 'can"ar\y<4>''s'`:                             `YAML '[removed]'`,
		`ASCII JSON {"a":"p\u00e4ss\ud83d\ude00w\u00f6rd"}`: `ASCII JSON {"a":"[removed]"}`,
		`half a pair \ud83d, of \ude00 hunter`:              `half a pair \ud83d, of \ude00 [removed]`,
		"HTML can&#34;ar\\y&lt;4&gt;&#39;s":                 "HTML [removed]",
		"/path/a+b%20c%2Fd&e=f":                             "/path/[removed]",
		"?query=a%2Bb+c%2Fd%26e%3Df&x":                      "?query=[removed]&x",
		"base64 " + base64.RawStdEncoding.EncodeToString([]byte("hunter2-the-real-password")): "base64 [removed]",
		"base64 of a short one " + b64("tr0ub") + ".":                                         "base64 of a short one [removed].",
		"inside " + b64(`{"a":"x","b":"48151623"}`):                                           "inside eyJhIjoieCIsImIiOi[removed]J9",
		"inside " + b64(`{"bb":"x","b":"48151623"}`):                                          "inside eyJiYiI6IngiLCJiIjoi[removed]ifQ==",
		"inside " + b64(`{"bbb":"x","b":"48151623"}`):                                         "inside eyJiYmIiOiJ4IiwiYiI6I[removed]In0=",
		"hex " + hex.EncodeToString([]byte("48151623")):                                       "hex [removed]",
		"the pin 48151623 is wrong":                                                           "the pin [removed] is wrong",
	} {
		if got := secrets.Line(given); got != want {
			t.Errorf("%s\ngave %s\nwant %s", given, got, want)
		}
	}
}

// What files and encoders make of values: a line break at the end, other blanks, quotes inside, and every character of an alphabet.
func TestSecretsInOtherForms(t *testing.T) {
	const sharp = ">>>???~~~>>>???~~~" // its base64 is full of the characters in which the alphabets differ

	for name, test := range map[string]struct{ value, text, want string }{
		"a short value of a file":       {"tr0ub\n", "no tr0ub here", "no [removed] here"},
		"a short value between blanks":  {"  tr0ub\r\n", "no tr0ub, and no " + b64("tr0ub"), "no [removed], and no [removed]"},
		"other blanks":                  {"hunter\u00a0two\u2003words", "no hunter two words", "no [removed]"},
		"quoted inside":                 {`{"auth":"p\u00e4ssw\u00f6rd\/long"}`, "denied: pässwörd/long", "denied: [removed]"},
		"quoted inside, and out":        {`{"auth":"he said \"no\" twice"}`, `denied: he said "no" twice`, "denied: [removed]"},
		"base64":                        {sharp, "no " + base64.StdEncoding.EncodeToString([]byte(sharp)), "no [removed]"},
		"base64 of URLs":                {sharp, "no " + base64.URLEncoding.EncodeToString([]byte(sharp)), "no [removed]"},
		"base64 in lines":               {sharp, "no Pj4+Pz8/\nfn5+Pj4+\nPz8/fn5+", "no [removed]"},
		"hexadecimal":                   {"\xab\xcd\xef\xfe\xdc\xba\x98\x76", "no abcdeffedcba9876", "no [removed]"},
		"hexadecimal, in large letters": {"\xab\xcd\xef\xfe\xdc\xba\x98\x76", "no ABCDEFFEDCBA9876", "no [removed]"},
		"a part of a query":             {sharp, "?a=%3E%3e%3E%3F%3f%3F~~~%3E%3e%3E%3F%3F%3F~~~&b", "?a=[removed]&b"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := redact.Of(test.value).Remove(test.text); got != test.want {
				t.Errorf("%q became %q, want %q", test.text, got, test.want)
			}
		})
	}
}

func b64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestNoSecrets(t *testing.T) {
	var none *redact.Secrets

	if got := none.Remove("as it is"); got != "as it is" || !none.Empty() || !redact.Of("abc").Empty() {
		t.Error(got)
	}

	if got := none.With(redact.Of("s3cret")).Remove("no s3cret"); got != "no [removed]" {
		t.Error(got)
	}
}

func TestWithHoldsBoth(t *testing.T) {
	ours := redact.Of("hunter2-the-first")
	both, others := ours.With(redact.Of("tr0ubadour/second")), ours.With(redact.Of("c0rrect=horse=third"))

	const text = "hunter2-the-first, tr0ubadour/second, c0rrect=horse=third"

	for name, test := range map[string]struct {
		secrets *redact.Secrets
		want    string
	}{
		"both":       {both, "[removed], [removed], c0rrect=horse=third"},
		"others":     {others, "[removed], tr0ubadour/second, [removed]"},
		"with none":  {ours.With(nil), "[removed], tr0ubadour/second, c0rrect=horse=third"},
		"with empty": {ours.With(redact.Of()), "[removed], tr0ubadour/second, c0rrect=horse=third"},
		"by itself":  {ours, "[removed], tr0ubadour/second, c0rrect=horse=third"},
	} {
		if got := test.secrets.Remove(text); got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// All texts and numbers of a document may be secret: a password need not be quoted.
func TestLeaves(t *testing.T) {
	got := redact.Leaves(map[string]any{
		"name": "one", "list": []any{"two", map[string]any{"deep": "three"}, []any{json.Number("4815.1623")}},
		"pin": int64(48151623), "ratio": 4815.25, "flag": true, "nothing": nil,
	})
	slices.Sort(got)

	if want := []string{"4815.1623", "4815.25", "48151623", "one", "three", "two"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestError(t *testing.T) {
	secrets := redact.Of("s3cret-value")

	if secrets.Error(nil) != nil {
		t.Error("nil became an error")
	}

	got := secrets.Error(fmt.Errorf("no s3cret-value: %w", io.ErrUnexpectedEOF))
	if got.Error() != "no [removed]: unexpected EOF" || !errors.Is(got, io.ErrUnexpectedEOF) {
		t.Error(got)
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	secrets := redact.Of("s3cret-value")
	if got := fmt.Sprintf("%v %+v %#v %s", secrets, secrets, secrets, secrets); strings.Contains(got, "s3cret") {
		t.Error(got)
	}
}

// A text that is valid stays valid, and where nothing shows nothing changes.
func TestRemoveKeepsCharacters(t *testing.T) {
	secrets := redact.Of("\xb6passw\xc3\xb6")

	if got := secrets.Remove("ööpasswöö"); got != "ö[removed]ö" {
		t.Errorf("%q", got)
	}

	if got := secrets.Remove("\xff\xfe"); got != "\xff\xfe" {
		t.Errorf("%q", got)
	}
}
