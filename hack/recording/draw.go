package main

import (
	"encoding/xml"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// The terminal that is drawn, in characters and in the SVG's units.
const (
	columns    = 140
	rows       = 30
	rowHeight  = 16
	charWidth  = 6.65
	fontSize   = 11
	margin     = 14
	titleSpace = 26
	// pause is how long the end is shown before the picture begins anew.
	pause = 5 * time.Second
)

// Colours of lines: what a reader reads first, types, and waits for.
const (
	colourTitle   = "#f2cc60"
	colourCommand = "#79c0ff"
	colourWaited  = "#7ee787"
	colourOutput  = "#c9d1d9"
)

// draw returns the SVG. All lines are one column of text that moves up: the newest line is the last one that is seen.
func draw(lines []line, length time.Duration) string {
	var (
		picture strings.Builder
		took    = lines[len(lines)-1].at
		total   = max(took, length-pause) + pause
		note    = fmt.Sprintf("a run of %s", took.Round(100*time.Millisecond))
		width   = columns*charWidth + 2*margin
		height  = rows*rowHeight + 2*margin + titleSpace
	)

	if took > 0 && total-pause > took {
		note += fmt.Sprintf(", shown %.1f times slower", float64(total-pause)/float64(took))
	}

	fmt.Fprintf(&picture, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" role="img" aria-label="A run of make demo">`+"\n", width, height)
	fmt.Fprintf(&picture, "<!-- Written by hack/recording (make recording) from %s. Do not edit. -->\n", note)
	fmt.Fprintf(&picture, "<style>\ntext { font: %dpx ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: %s; white-space: pre }\n", fontSize, colourOutput)
	fmt.Fprintf(&picture, ".t { fill: %s; font-weight: bold } .c { fill: %s } .w { fill: %s }\n", colourTitle, colourCommand, colourWaited)
	fmt.Fprintf(&picture, "#lines { animation: lines %.2fs step-end infinite }\n", total.Seconds())
	fmt.Fprintf(&picture, "@keyframes lines {\n%s}\n", keyframes(lines, total-pause, total))
	picture.WriteString("@media (prefers-reduced-motion: reduce) { #lines { animation: none } }\n</style>\n")
	fmt.Fprintf(&picture, `<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/><text x="%d" y="%d" fill-opacity=".6">$ make demo   (%s)</text>`+"\n", margin, margin+rowHeight/2, note)
	// Where nothing moves the end is shown.
	fmt.Fprintf(&picture, `<svg x="%d" y="%d" width="%.0f" height="%d"><g id="lines" xml:space="preserve" transform="translate(0 %d)">`+"\n",
		margin, margin+titleSpace, width-2*margin, rows*rowHeight, shift(len(lines)))

	for i, l := range lines {
		if l.text != "" {
			fmt.Fprintf(&picture, "<text%s y=\"%d\">%s</text>\n", class(l.text), (i+1)*rowHeight-rowHeight/4, escaped(l.text))
		}
	}

	picture.WriteString("</g></svg>\n</svg>\n")

	return picture.String()
}

// shift is how far the text is moved when so many lines are printed: the newest is in the last row.
func shift(printed int) int { return (rows - printed) * rowHeight }

// keyframes say when the text moves: the run is stretched to what is shown of the total. Lines that are still to come are
// out of sight, below the last row.
func keyframes(lines []line, shown, total time.Duration) string {
	var (
		frames  strings.Builder
		last    = -1
		took    = max(lines[len(lines)-1].at, 1)
		stretch = float64(shown) / float64(took) / float64(total) * 10000
	)

	for i, l := range lines {
		// Lines of the same moment are one step.
		if i+1 < len(lines) && lines[i+1].at-l.at < 20*time.Millisecond {
			continue
		}

		if hundredths := int(float64(l.at) * stretch); hundredths > last {
			fmt.Fprintf(&frames, "%d.%02d%% { transform: translateY(%dpx) }\n", hundredths/100, hundredths%100, shift(i+1))
			last = hundredths
		}
	}

	fmt.Fprintf(&frames, "100%% { transform: translateY(%dpx) }\n", shift(len(lines)))

	return frames.String()
}

// class is the style of a line.
func class(text string) string {
	switch {
	case strings.HasPrefix(text, "# "):
		return ` class="t"`
	case strings.HasPrefix(text, "$ "):
		return ` class="c"`
	case strings.HasPrefix(text, "  -> "):
		return ` class="w"`
	default:
		return ""
	}
}

// escaped fits a text into a row.
func escaped(text string) string {
	if utf8.RuneCountInString(text) > columns {
		text = string([]rune(text)[:columns-1]) + "…"
	}

	var safe strings.Builder
	if err := xml.EscapeText(&safe, []byte(text)); err != nil {
		panic(err) // a strings.Builder takes everything
	}

	return safe.String()
}
