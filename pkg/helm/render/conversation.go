package render

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// answerLimits bound the chart as it is recorded, once it is decoded.
//
//nolint:gochecknoglobals // a constant, but Go has none of this type
var answerLimits = foreign.Limits{Bytes: MaxAnswer, Depth: 200, Nodes: 500_000, Expanded: MaxAnswer}

// answer looks up what a template asks for.
func (p *process) answer(ctx context.Context, content []byte, lookup Lookup) error {
	var question Question
	if err := json.Unmarshal(content, &question); err != nil {
		return errConfused
	}

	reply := lookup(ctx, question)
	if len(reply.Object) > MaxReply {
		reply = Reply{Error: fmt.Sprintf("what was found has more than %d MiB", MaxReply>>20)}
	}

	text, err := json.Marshal(reply)
	if err != nil {
		return fmt.Errorf("write what was looked up: %w", err)
	}

	return WriteFrame(p.to, KindReply, text)
}

// parseFailure is what a worker says is wrong with what it was given.
func parseFailure(content []byte) error {
	failure := &Failure{}
	if err := json.Unmarshal(content, failure); err != nil {
		return errConfused
	}

	return failure
}

// decode reads an answer and the text of the files.
func (s *printed) decode() (*Answer, map[string]string, error) {
	size, err := foreign.Measure(context.Background(), s.answer, answerLimits)
	if err != nil {
		var limit *foreign.LimitError
		if errors.As(err, &limit) {
			return nil, nil, refused("its own files and values, as Helm records them: %s", limit)
		}

		return nil, nil, errConfused
	}

	answer := &Answer{size: size}
	if err := json.Unmarshal(s.answer, answer); err != nil || answer.Chart == nil || answer.Chart.Metadata == nil {
		return nil, nil, errConfused
	}

	files, err := split(answer, string(s.text))

	return answer, files, err
}

// expect reads a frame of one kind.
func (p *process) expect(wanted Kind) ([]byte, error) {
	kind, content, err := ReadFrame(p.from)
	if err != nil {
		return nil, err
	}

	if kind != wanted {
		return nil, errConfused
	}

	return content, nil
}

// split cuts the text into the files that it consists of.
func split(answer *Answer, text string) (map[string]string, error) {
	files := make(map[string]string, len(answer.Files))

	for _, file := range answer.Files {
		_, twice := files[file.Name]
		if file.Bytes < 0 || file.Bytes > len(text) || twice || !inside(file.Name, answer.Chart.Name()) {
			return nil, errConfused
		}

		files[file.Name], text = text[:file.Bytes], text[file.Bytes:]
	}

	if text != "" {
		return nil, errConfused
	}

	return files, nil
}

// inside reports whether a rendered file has a name that Helm gives to one of the
// chart with this name.
func inside(name, chart string) bool {
	return strings.HasPrefix(name, chart+"/") && path.Clean(name) == name
}

// chartFailure is a chart's failure: one of its size is final.
func chartFailure(err error) error {
	var failure *Failure
	if errors.As(err, &failure) && failure.Stage == StageSize {
		return refused("%s", failure.Text)
	}

	return err
}
