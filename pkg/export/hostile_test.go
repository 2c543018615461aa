package export

import (
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// Contents are whatever somebody has put into Omni.
func TestHostileContents(t *testing.T) {
	for name, content := range map[string]string{
		"large":   "a: [" + strings.Repeat("a,", 1<<20) + "a]\n",
		"aliases": "a: &a " + strings.Repeat("x", 30<<10) + "\nb: [" + strings.Repeat("*a,", 2000) + "*a]\n",
		"deep":    "a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n",
	} {
		foreigntest.WantAllocated(t, 48<<20, func() {
			if _, err := jobOf(t.Context(), content); err == nil {
				t.Errorf("%s: is read", name)
			}

			if _, ok := inlineBlocks(content); ok {
				t.Errorf("%s: is kept inline", name)
			}
		})
	}
}

func FuzzContent(f *testing.F) {
	for _, content := range []string{"a: b\n", "a:\n  - 1\n  - \"2\"\n---\nb: true\n", "a: &a [*a]\n", "a: " + strings.Repeat("[", 200), "? {a: b}\n: c\n", "a: 1e400\n"} {
		f.Add(content)
	}

	f.Fuzz(func(t *testing.T, content string) {
		if len(content) > 64<<10 {
			return
		}

		foreigntest.WantAllocated(t, 96<<20, func() {
			_, _ = jobOf(t.Context(), content)
			_, _ = inlineBlocks(content)
		})
	})
}
