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

// errConfused is a worker that does not keep to the protocol.
var errConfused = errors.New("the process that rendered the chart sent something unexpected")

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

func parseFailure(content []byte) error {
	var failure Failure
	if err := json.Unmarshal(content, &failure); err != nil {
		return errConfused
	}

	if failure.Stage == StageSize {
		return refused("%s", failure.Text)
	}

	return &failure
}

// result reads an answer and the text that follows it.
func (p *process) result(content []byte) (*Answer, map[string]string, error) {
	if err := foreign.Check(context.Background(), content, answerLimits); err != nil {
		var limit *foreign.LimitError
		if errors.As(err, &limit) {
			return nil, nil, refused("its own files and values, as Helm records them: %s", limit)
		}

		return nil, nil, errConfused
	}

	answer := &Answer{}
	if err := json.Unmarshal(content, answer); err != nil || answer.Chart == nil || answer.Chart.Metadata == nil {
		return nil, nil, errConfused
	}

	kind, text, err := ReadFrame(p.from)
	if err != nil {
		return nil, nil, err
	}

	if kind != KindText {
		return nil, nil, errConfused
	}

	files, err := split(answer, string(text))

	return answer, files, err
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

// inside tells whether a rendered file has a name that Helm gives to one of the
// chart with this name.
func inside(name, chart string) bool {
	return strings.HasPrefix(name, chart+"/") && path.Clean(name) == name
}
