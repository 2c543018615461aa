package template

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// maxText is how large the text of a template may be, in bytes; and, together, that of the blocks in it. In YAML each line of
// a deeply nested list is indented, so the text can have a hundred times the size of the stored objects. The largest
// templates in use have a few hundred kilobytes.
const maxText = 16 << 20

// tooLargeError is returned when a template is larger than maxText.
type tooLargeError struct{}

func (tooLargeError) Error() string {
	return fmt.Sprintf("the template would be larger than %d MiB as text: use fewer or smaller patches and manifests, or nest them less deeply", maxText>>20)
}

// budget is how many bytes of text may still be written.
type budget struct{ left int }

func newBudget() *budget { return &budget{left: maxText} }

// take counts bytes. The error is a tooLargeError.
func (b *budget) take(bytes int) error {
	if b.left -= bytes; b.left < 0 {
		return tooLargeError{}
	}

	return nil
}

// encode returns documents as YAML, separated by ---, as long as the budget lasts.
func (b *budget) encode(documents int, document func(i int) (any, error)) ([]byte, error) {
	text := &boundedText{budget: b}

	encoder := yaml.NewEncoder(text)
	encoder.SetIndent(indent)

	for i := range documents {
		content, err := document(i)
		if err != nil {
			return nil, err
		}

		if err := encoder.Encode(content); err != nil {
			return nil, text.explain(err)
		}
	}

	if err := encoder.Close(); err != nil {
		return nil, text.explain(err)
	}

	return text.Bytes(), nil
}

// boundedText collects text within a budget.
type boundedText struct {
	bytes.Buffer

	budget *budget
}

// Write implements io.Writer.
func (t *boundedText) Write(p []byte) (int, error) {
	if err := t.budget.take(len(p)); err != nil {
		return 0, err
	}

	return t.Buffer.Write(p)
}

// explain returns the cause of an error of the encoder, which hides it.
func (t *boundedText) explain(err error) error {
	if t.budget.left < 0 {
		return tooLargeError{}
	}

	return err
}
