// Package golden compares what tests make with committed files, and writes these anew:
//
//	go test ./the/package -update
package golden

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Expect compares a text with a file.
func Expect(t *testing.T, file, got string) {
	t.Helper()

	if *update {
		write(t, file, []byte(got))
	}

	if diff := cmp.Diff(string(read(t, file)), got); diff != "" {
		t.Errorf("%s differs, -update writes it (-want +got):\n%s", file, diff)
	}
}

// UpdateJSON writes a file with -update, indented for reviewers. Indenting keeps numbers and texts as they are.
func UpdateJSON(t *testing.T, file string, got []byte) {
	t.Helper()

	if !*update {
		return
	}

	var indented bytes.Buffer
	if err := json.Indent(&indented, bytes.TrimSpace(got), "", "  "); err != nil {
		t.Fatal(err)
	}

	indented.WriteByte('\n')
	write(t, file, indented.Bytes())
}

// JSON returns a file as the API server writes it: compact, with a line break.
func JSON(t *testing.T, file string) []byte {
	t.Helper()

	var compact bytes.Buffer
	if err := json.Compact(&compact, read(t, file)); err != nil {
		t.Fatal(err)
	}

	compact.WriteByte('\n')

	return compact.Bytes()
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()

	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()

	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	return content
}
