// Command chartdoc writes the README of the chart: readme.tmpl with the tables of values, which it makes from the comments
// in values.yaml and, where there are none, from the descriptions in values.schema.json. `make generate` runs it; `make
// verify` checks that nothing is stale.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"go.yaml.in/yaml/v3"
)

//go:embed readme.tmpl
var frame string

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: chartdoc <directory of a chart>")
		os.Exit(2)
	}

	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "chartdoc:", err)
		os.Exit(1)
	}
}

// chart is what the frame shows of Chart.yaml.
type chart struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Version     string `yaml:"version"`
	AppVersion  string `yaml:"appVersion"`
	KubeVersion string `yaml:"kubeVersion"`
}

func generate(dir string) error {
	var (
		about  chart
		values yaml.Node
		schema schemaNode
	)

	for _, file := range []struct {
		name  string
		read  func([]byte, any) error
		value any
	}{
		{"Chart.yaml", yaml.Unmarshal, &about},
		{"values.yaml", yaml.Unmarshal, &values},
		{"values.schema.json", json.Unmarshal, &schema},
	} {
		content, err := os.ReadFile(filepath.Join(dir, file.name))
		if err != nil {
			return fmt.Errorf("read the chart: %w", err)
		}

		if err := file.read(content, file.value); err != nil {
			return fmt.Errorf("read %s: %w", file.name, err)
		}
	}

	sections, err := describe(&values, &schema)
	if err != nil {
		return err
	}

	page, err := template.New("README.md").Parse(frame)
	if err != nil {
		return fmt.Errorf("read the frame: %w", err)
	}

	var text bytes.Buffer
	if err := page.Execute(&text, map[string]any{"Chart": about, "Sections": sections}); err != nil {
		return fmt.Errorf("fill the frame: %w", err)
	}

	if err := os.WriteFile(filepath.Join(dir, "README.md"), text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the README: %w", err)
	}

	return nil
}
