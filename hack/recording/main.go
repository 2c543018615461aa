// Command recording runs a program and writes what it prints, line by line at the times when it printed it, as an animated
// SVG: the picture of `make demo` in the README. `make recording` runs it.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// line is one that the program printed, with the time since the first one.
type line struct {
	at   time.Duration
	text string
}

func main() {
	out := flag.String("o", "", "the SVG to write")
	from := flag.String("from", "", "how the first line that is recorded begins; those before it are the preparation")
	length := flag.Duration("length", 0, "how long the picture takes at least; a run that was quicker is shown slower, and the picture says so")
	flag.Parse()

	if *out == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: recording -o FILE [-from TEXT] [-length DURATION] PROGRAM [ARGUMENT...]")
		os.Exit(2)
	}

	if err := run(*out, *from, *length, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func run(out, from string, length time.Duration, command []string) error {
	program := exec.Command(command[0], command[1:]...)
	program.Stderr = os.Stderr

	printed, err := program.StdoutPipe()
	if err != nil {
		return err
	}

	if err := program.Start(); err != nil {
		return err
	}

	lines, err := record(io.TeeReader(printed, os.Stdout), from, time.Now)
	if err != nil {
		return err
	}

	// A run that failed is no recording.
	if err := program.Wait(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}

	if len(lines) == 0 {
		return fmt.Errorf("no line begins with %q", from)
	}

	return os.WriteFile(out, []byte(draw(lines, length)), 0o644)
}

// record reads lines until the end, from the first that begins with a text.
func record(printed io.Reader, from string, now func() time.Time) ([]line, error) {
	var (
		lines []line
		start time.Time
	)

	scanner := bufio.NewScanner(printed)
	for scanner.Scan() {
		if len(lines) == 0 {
			if !strings.HasPrefix(scanner.Text(), from) {
				continue
			}

			start = now()
		}

		lines = append(lines, line{at: now().Sub(start), text: generic(scanner.Text())})
	}

	return lines, scanner.Err()
}

// temporary is the path of a directory that exists during the run only.
var temporary = regexp.MustCompile(regexp.QuoteMeta(strings.TrimSuffix(os.TempDir(), "/")) + `/[^/ ]+/`)

// generic leaves out of a line what is another one in every run.
func generic(text string) string { return temporary.ReplaceAllString(text, "/tmp/demo/") }
