package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

const testSchema = `{"properties": {
	"plain": {"description": "Of the schema."},
	"image": {"description": "Image.", "properties": {"tag": {"description": "Tag."}, "more": {"properties": {"a": {"description": "A."}}}}}
}}`

func describeText(t *testing.T, values string) ([]section, error) {
	t.Helper()

	var (
		document yaml.Node
		schema   schemaNode
	)

	if err := yaml.Unmarshal([]byte(values), &document); err != nil {
		t.Fatal(err)
	}

	if err := json.Unmarshal([]byte(testSchema), &schema); err != nil {
		t.Fatal(err)
	}

	return describe(&document, &schema)
}

func TestDescribe(t *testing.T) {
	t.Parallel()

	got, err := describeText(t, `# Two
# lines | with a <bar>.
map: {a: [1, x]}
plain: 1.5
image:
  # Above.
  tag: ""
  # In common.
  more:
    a: null
`)
	if err != nil {
		t.Fatal(err)
	}

	want := []section{
		{Title: "General", Rows: []row{
			{Name: "map", Default: `{"a":[1,"x"]}`, Text: `Two lines \| with a &lt;bar>.`},
			{Name: "plain", Default: "1.5", Text: "Of the schema."},
		}},
		{Title: "`image`", Text: "Image.", Rows: []row{
			{Name: "image.tag", Default: `""`, Text: "Above."},
			{Name: "image.more", Text: "In common."},
			{Name: "image.more.a", Default: "null", Text: "A."},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDescribeRefusesWhatNobodyExplains(t *testing.T) {
	t.Parallel()

	if _, err := describeText(t, "image: {other: 1}"); err == nil || !strings.Contains(err.Error(), "image.other is explained neither") {
		t.Errorf("got %v", err)
	}

	if _, err := describeText(t, "[a]"); err == nil {
		t.Error("a list is taken")
	}
}
