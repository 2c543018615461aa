package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

func TestFrames(t *testing.T) {
	var stream bytes.Buffer

	if err := errors.Join(WriteFrame(&stream, KindReady, nil), WriteFrame(&stream, KindText, []byte("a\x00b"))); err != nil {
		t.Fatal(err)
	}

	if err := WriteFrame(&stream, KindQuestion, make([]byte, maxMessage+1)); err == nil {
		t.Error("a frame that is too long was written")
	}

	for _, want := range []struct {
		kind    Kind
		content string
	}{{KindReady, ""}, {KindText, "a\x00b"}} {
		if kind, content, err := ReadFrame(&stream); kind != want.kind || string(content) != want.content || err != nil {
			t.Errorf("%q %q %v, want %+v", kind, content, err, want)
		}
	}

	if _, _, err := ReadFrame(&stream); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

// maxFuzzed is what a few bytes of a worker may make this process take: the largest frame, twice.
const maxFuzzed = 2*maxRequest + 8<<20

// FuzzWorker lets a worker that is not ours say anything.
func FuzzWorker(f *testing.F) {
	frames := func(pairs ...any) []byte {
		var stream bytes.Buffer

		for i := 0; i < len(pairs); i += 2 {
			if err := WriteFrame(&stream, pairs[i].(Kind), []byte(pairs[i+1].(string))); err != nil {
				f.Fatal(err)
			}
		}

		return stream.Bytes()
	}

	f.Add(frames(KindAnswer, `{"chart":{"metadata":{"name":"a"}},"rendered":true,"files":[{"name":"a/templates/b","bytes":1}]}`, KindText, "x"))
	f.Add(frames(KindAnswer, `{"chart":{"metadata":{"name":"a"}},"files":[{"name":"../b","bytes":-1}]}`, KindText, "x"))
	f.Add(frames(KindQuestion, `{"kind":"Secret"}`, KindFailure, `{"stage":"render","text":"no"}`))
	f.Add(frames(KindFailure, `{"stage":"size","text":"no"}`))
	f.Add(frames(KindEntries, "\x01a\x011\x00\x00", KindEntries, "\x01a\x012\x01u\x01d", KindDone, ""))
	f.Add([]byte("e\x01\xff\xff\xff"))
	f.Add([]byte("a\xff\xff\xff\xff"))
	f.Add(frames(KindAnswer, `{"chart":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}`))

	f.Fuzz(func(t *testing.T, said []byte) {
		devNull, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer devNull.Close()

		path := t.TempDir() + "/said"
		if err := os.WriteFile(path, said, 0o600); err != nil {
			t.Fatal(err)
		}

		from, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()

		p := &process{from: from, to: devNull}

		foreigntest.WantAllocated(t, maxFuzzed, func() {
			said, err := p.render(t.Context(), nil, nil, func(context.Context, Question) Reply { return Reply{} })
			if err != nil {
				return
			}

			answer, files, err := said.decode()
			if err != nil {
				return
			}

			for name := range files {
				if !inside(name, answer.Chart.Name()) {
					t.Errorf("a file %q of chart %q", name, answer.Chart.Name())
				}
			}
		})

		again := func() {
			if _, err := from.Seek(0, io.SeekStart); err != nil {
				t.Fatal(err)
			}
		}

		again()
		foreigntest.WantAllocated(t, maxFuzzed, func() {
			index, err := p.readIndex(nil)
			if err == nil && index.Bytes > MaxIndex {
				t.Errorf("%d bytes are kept", index.Bytes)
			}
		})

		again()
		foreigntest.WantAllocated(t, maxFuzzed, func() { _ = p.checkProvenance(nil, nil, nil) })
	})
}

// What a worker writes is what is read here, whatever the texts are.
func TestEntries(t *testing.T) {
	index := NewIndex()
	for i := range 20_000 {
		index.Add(fmt.Sprint("chart-", i%100), Entry{Version: fmt.Sprint(i), URL: strings.Repeat("\x00u", i%50), Digest: "d"})
	}

	index.Add("", Entry{Version: strings.Repeat("v", 1<<20)})

	read, count := NewIndex(), 0

	err := index.WriteEntries(func(content []byte) error {
		count++

		return read.readEntries(content)
	})
	if err != nil || count < 2 || !reflect.DeepEqual(index.Charts, read.Charts) {
		t.Errorf("%v, %d frames", err, count)
	}
}

// The process that has an index read counts by itself what it keeps of it.
func TestHostileEntries(t *testing.T) {
	entry := []byte{0, 1, '1', 0, 0} // five bytes, of which a hundred times as much would be kept

	for name, content := range map[string][]byte{
		"many":              bytes.Repeat(entry, 4<<20),
		"no version":        {0, 0, 0, 0},
		"cut short":         {0, 1, '1', 0},
		"longer than it is": {0, 200, 1, 0, 0},
		"longest":           {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
	} {
		foreigntest.WantPeak(t, 96<<20, func() {
			if err := NewIndex().readEntries(content); !errors.Is(err, errConfused) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
