package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// encoders are the ways in which a value is written into a text.
var encoders = []func(string) string{
	func(s string) string { return s },
	func(s string) string { return fmt.Sprintf("%q", s) },
	func(s string) string { text, _ := json.Marshal(s); return string(text) },
	func(s string) string { text, _ := yaml.Marshal(map[string]string{"a": s}); return string(text) },
	func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" },
	url.QueryEscape, url.PathEscape, html.EscapeString, b64,
	func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	func(s string) string { return base64.StdEncoding.EncodeToString([]byte("user:" + s + "@")) },
	func(s string) string { return hex.EncodeToString([]byte(s)) },
}

// shows returns a piece of a value that a text shows: as it is, or as an encoder writes it.
func shows(text, value string) string {
	for _, part := range strings.Split(strings.TrimSuffix(text, "..."), "[removed]") {
		for i := 0; i+redact.Window <= len(value); i++ {
			if piece := value[i : i+redact.Window]; strings.Contains(part, piece) {
				return piece
			}
		}
	}

	return ""
}

func folded(text string) string { return strings.Join(strings.Fields(text), " ") }

// randomValue makes values with much in common, of few characters that need escapes.
func randomValue(random *rand.Rand, earlier []string) string {
	const letters = "abcdefghijk01234567-_/+=%&\"'\\<>{}:,. \n\té€"

	runes, value := []rune(letters), ""
	if len(earlier) > 0 && random.IntN(2) == 0 { // the beginning or the end of another one
		other := earlier[random.IntN(len(earlier))]
		if at := random.IntN(len(other) + 1); random.IntN(2) == 0 {
			value = other[:at]
		} else {
			value = other[at:]
		}
	}

	for range random.IntN(30) {
		value += string(runes[random.IntN(len(runes))])
	}

	return value
}

// Whatever a text quotes, in whichever form, whole or cut: no piece of a value remains.
func TestNoPieceRemains(t *testing.T) {
	foreigntest.Sequential(t)

	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 15)) // a test that can be repeated

		var values []string
		for range 1 + random.IntN(5) {
			values = append(values, randomValue(random, values))
		}

		text := ""

		for range 1 + random.IntN(4) {
			quoted := values[random.IntN(len(values))]
			for range 1 + random.IntN(2) {
				quoted = encoders[random.IntN(len(encoders))](quoted)
			}

			text += "it says " + quoted[:random.IntN(len(quoted)+1)] + strings.Repeat(" word", random.IntN(50))
		}

		secrets := redact.Of(values...)
		for _, got := range []string{secrets.Line(text), folded(secrets.Remove(text)), redact.Bounded(secrets.Line(text), 100)} {
			for _, value := range values {
				if piece := shows(got, value) + shows(got, folded(value)); piece != "" {
					t.Fatalf("seed %d: %q shows %q of %q", seed, got, piece, value)
				}
			}
		}
	}
}

// A value that is written in one form is found as a whole: nothing is left of what
// it was encoded to but the last characters that it shares with its neighbours.
func TestEveryFormIsFound(t *testing.T) {
	const value = `Tr0ub4dor&3 "correct horse" \ battery+staple/<é> it's`

	for i, inner := range encoders {
		for j, outer := range encoders {
			if i >= 8 && j >= 8 {
				continue // base64 of base64 is not what anybody writes into an error
			}

			encoded := outer(inner(value))
			got := redact.Of(value).Remove("before " + encoded + " after")

			if before, rest, _ := strings.Cut(got, "[removed]"); len(before) > len("before ")+12 || len(rest) > len(" after")+12 {
				t.Errorf("encoders %d and %d: %s became %s", i, j, encoded, got)
			}
		}
	}
}

func FuzzSecrets(f *testing.F) {
	f.Add("hunter", "hunter2-the-real-password", "before ", " after", uint8(0), uint8(10))
	f.Add("a: \"quoted, text\"", "\xff\xfe\x00binary", "", "", uint8(3), uint8(12))
	f.Add("line one\nline two", "...[removed]...", "\t", "...", uint8(1), uint8(200))

	f.Fuzz(func(t *testing.T, one, other, before, after string, form, cut uint8) {
		quoted := encoders[int(form)%len(encoders)](one)
		text := before + quoted[:min(int(cut), len(quoted))] + after + other

		for _, got := range []string{redact.Of(one, other).Line(text), redact.Of(other, one).Line(text)} {
			if len(got) > redact.MaxBytes {
				t.Errorf("%d bytes", len(got))
			}

			for _, value := range []string{one, other} {
				if piece := shows(got, value); piece != "" {
					t.Errorf("%q shows %q of %q", got, piece, value)
				}
			}
		}
	})
}

// Many large values and the longest text cost memory by the text, and none by the values.
func TestRemovingIsBounded(t *testing.T) {
	foreigntest.Sequential(t)

	var values []string

	random := rand.New(rand.NewPCG(1, 2)) // a test that can be repeated
	for range 8 {
		value := make([]byte, 1<<20)
		for i := range value {
			value[i] = "0123456789abcdef\\\n"[random.IntN(18)]
		}

		values = append(values, string(value))
	}

	secrets := redact.Of(values...)
	text := strings.Repeat(`\\\\\\u0041%41&#65;+''`, 4000) + values[7][:100]

	// All that is taken in one call, also what is given back meanwhile; the values have 8 MiB.
	foreigntest.WantAllocated(t, 200<<20, func() {
		if got := secrets.Line(text); len(got) > redact.MaxBytes {
			t.Errorf("%d bytes", len(got))
		}
	})
}

func BenchmarkSecrets(b *testing.B) {
	large := strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz", 1<<20/36)
	text := strings.Repeat("failed to create resource: admission webhook denied the request; ", 8)

	for name, secrets := range map[string]*redact.Secrets{"one word": redact.Of("s3cret-value"), "1 MiB": redact.Of(large)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				secrets.Line(text)
			}
		})
	}
}
