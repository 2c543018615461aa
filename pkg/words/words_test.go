package words_test

import (
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

func TestPlural(t *testing.T) {
	for count, want := range map[int]string{0: "0 lines", 1: "1 line", 2: "2 lines"} {
		if got := words.Plural(count, "line"); got != want {
			t.Errorf("%d: %q, want %q", count, got, want)
		}
	}
}

func TestFew(t *testing.T) {
	for name, test := range map[string]struct {
		texts     []string
		separator string
		want      string
	}{
		"none":         {nil, ", ", ""},
		"one":          {[]string{"a"}, ", ", "a"},
		"all":          {[]string{"a", "b"}, ", ", "a, b"},
		"one too many": {[]string{"a", "b", "c"}, ", ", "a, b, and 1 more"},
		"many":         {[]string{"a", "b", "c", "d"}, "; ", "a; b; and 2 more"},
	} {
		if got := words.Few(test.texts, 2, test.separator); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
