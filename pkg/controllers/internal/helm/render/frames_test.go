package render

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/foreigntest"
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
			answer, files, err := p.render(t.Context(), nil, nil, func(context.Context, Question) Reply { return Reply{} })
			if err != nil {
				return
			}

			for name := range files {
				if !inside(name, answer.Chart.Name()) {
					t.Errorf("a file %q of chart %q", name, answer.Chart.Name())
				}
			}
		})
	})
}
