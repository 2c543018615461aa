package words_test

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func TestForms(t *testing.T) {
	moment := time.Date(2026, 11, 27, 13, 0, 0, 999_999_999, time.FixedZone("east", 3600))

	if got := words.Time(moment); got != "2026-11-27T12:00:00Z" {
		t.Errorf("text %s", got)
	}

	if got := words.TimeWithZone(moment); got != "Fri 2026-11-27 13:00 east" {
		t.Errorf("shown %s", got)
	}

	if got := moment.UTC().Format(words.TimeInNames); got != "20261127T120000Z" {
		t.Errorf("in names %s", got)
	}

	stored := words.StoredTime(moment)

	text, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}

	// What the API gives back is what was stored, so that a second run writes nothing.
	var read metav1.Time
	if err := json.Unmarshal(text, &read); err != nil || !read.Equal(&stored) || string(text) != `"2026-11-27T12:00:00Z"` {
		t.Errorf("stored as %s, read as %s: %v", text, read, err)
	}
}
