package foreigntest

import (
	"bytes"
	"fmt"
	"strings"
)

// Aliased is a YAML text of some KiB, in which one value of kib KiB is referred to count times.
func Aliased(kib, count int) []byte {
	return []byte("a: &a " + strings.Repeat("x", kib<<10) + "\nb: [" + strings.TrimSuffix(strings.Repeat("*a,", count), ",") + "]\n")
}

// Doubled is a short YAML text whose aliases stand for 2 to the power of lines values.
func Doubled(lines int) []byte {
	text := bytes.NewBufferString("a0: &a0 [x, x]\n")
	for i := range lines {
		fmt.Fprintf(text, "a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}

	return text.Bytes()
}
