package redact_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// shown has texts in all places that a status has them in.
type shown struct {
	Name  string
	Lines []string
	Part  *shown
	Times map[string]time.Time
	Any   any
	Raw   []byte
}

func TestMakePrintable(t *testing.T) {
	const said, want = "a\x1b[31m\u202eb\nc\r\u009b\x00d", "a [31m b\nc   d"

	now := time.Now()
	of := func(text string) *shown {
		return &shown{
			Name: text, Lines: []string{"plain", text}, Part: &shown{Name: text}, Times: map[string]time.Time{text: now, "plain": now},
			Raw: []byte(said),
		}
	}

	if value := of("one\ntwo é"); !redact.IsPrintable(value) {
		t.Error("a text of two lines counts as not printable")
	}

	value := of(said)
	if redact.IsPrintable(*value) {
		t.Error("it counts as printable")
	}

	redact.MakePrintable(value)

	if diff := cmp.Diff(of(want), value); diff != "" {
		t.Error(diff)
	}

	for name, hidden := range map[string]any{"a part": shown{Part: &shown{Name: said}}, "a key": shown{Times: map[string]time.Time{said: now}}, "any value": shown{Any: []string{said}}} {
		if redact.IsPrintable(hidden) {
			t.Errorf("%s counts as printable", name)
		}
	}
}
