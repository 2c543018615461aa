package app

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/util/term"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// showsColours reports whether a stream is a terminal whose user did not ask for plain text (https://no-color.org).
func showsColours(out io.Writer) bool {
	return term.IsTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// The colours, as ANSI sequences of the same length, so that columns stay in line.
const (
	plain  = "\x1b[39m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	ends   = "\x1b[0m"
)

// table writes rows in columns; the first row is the heading.
type table struct {
	colour bool
	rows   [][]string
	colors []string
}

func (t *table) add(colour string, cells ...string) {
	t.rows, t.colors = append(t.rows, cells), append(t.colors, colour)
}

// goOn adds a line to the row before it.
func (t *table) goOn(cells ...string) {
	for i, cell := range cells {
		if cell == "" {
			cells[i] = " "
		}
	}

	t.add(plain, cells...)
}

func (t *table) write(out io.Writer) error {
	columns := printers.GetNewTabWriter(out)

	for i, row := range t.rows {
		for j, cell := range row {
			row[j] = cmp.Or(escaped(cell), "-")
		}

		if t.colour {
			row[0] = t.colors[i] + row[0]
			row[len(row)-1] += ends
		}

		if _, err := fmt.Fprintln(columns, strings.Join(row, "\t")); err != nil {
			return err
		}
	}

	return columns.Flush()
}

// escaped is the text of a cell, which others may have written, without what a terminal takes for a command and without what
// begins another column or row.
func escaped(cell string) string { return redact.Printable(printers.EscapeTerminal(cell)) }

// colourOf says at a glance how an object is.
func colourOf(ready metav1.ConditionStatus, stalled bool) string {
	switch {
	case stalled:
		return red
	case ready == metav1.ConditionTrue:
		return green
	default:
		return yellow
	}
}

// age is how long ago something was, as kubectl shows it.
func age(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}

	return duration.HumanDuration(now.Sub(since))
}

// cut shortens a text to a width.
func cut(text string, width int) string {
	runes := []rune(strings.ReplaceAll(text, "\n", " "))
	if len(runes) <= width {
		return string(runes)
	}

	return string(runes[:width-3]) + "..."
}
