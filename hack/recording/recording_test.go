package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clock returns a time that is a second later at each look.
func clock() func() time.Time {
	at := time.Unix(0, 0)

	return func() time.Time {
		at = at.Add(time.Second)

		return at
	}
}

func TestRecord(t *testing.T) {
	lines, err := record(strings.NewReader("preparing\nbegin here\n$ do "+os.TempDir()+"/hub-1/a.yaml\n"), "begin", clock())
	if err != nil || len(lines) != 2 {
		t.Fatalf("%v: %v", lines, err)
	}

	if lines[0].text != "begin here" || lines[1].text != "$ do /tmp/demo/a.yaml" || lines[1].at <= lines[0].at {
		t.Errorf("%v", lines)
	}
}

// wellFormed reads a picture to its end.
func wellFormed(t *testing.T, picture string) {
	t.Helper()

	decoder := xml.NewDecoder(strings.NewReader(picture))

	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestDraw(t *testing.T) {
	lines := []line{{0, "# a <b> & \"c\""}, {time.Second, "$ long " + strings.Repeat("x", 200)}, {time.Second, ""}, {3 * time.Second, "  -> done"}}
	picture := draw(lines, 0)

	wellFormed(t, picture)

	for _, want := range []string{"a &lt;b&gt; &amp;", `class="t"`, `class="c"`, `class="w"`, "…", "0.00% {", "12.50% {", "37.50% {", "100% {", "a run of 3s)"} {
		if !strings.Contains(picture, want) {
			t.Errorf("there is no %q in %s", want, picture)
		}
	}

	// Twice as slow: 6 of 11 seconds.
	slower := draw(lines, 11*time.Second)
	for _, want := range []string{"18.18% {", "54.54% {", "a run of 3s, shown 2.0 times slower"} {
		if !strings.Contains(slower, want) {
			t.Errorf("there is no %q in %s", want, slower)
		}
	}

	if strings.Contains(picture, strings.Repeat("x", columns)) {
		t.Error("a long line is not cut")
	}
}

func TestRunOfAProgramThatFailsIsNoRecording(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.svg")
	if err := run(out, "", 0, []string{"sh", "-c", "echo something; exit 3"}); err == nil {
		t.Error("it is taken for one")
	}

	if _, err := os.Stat(out); err == nil {
		t.Error("it was written")
	}
}

// The picture in the docs is one that this command wrote.
func TestThePictureInTheDocs(t *testing.T) {
	picture, err := os.ReadFile("../../docs/images/demo.svg")
	if err != nil {
		t.Fatal(err)
	}

	wellFormed(t, string(picture))

	if !strings.Contains(string(picture), "Written by hack/recording") {
		t.Error("docs/images/demo.svg is not written by hack/recording: make recording")
	}
}
