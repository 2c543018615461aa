package plan

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/omni/client/pkg/template"
	"go.yaml.in/yaml/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// Template is a cluster template that Omni's own rules accept. It is compared with a state as often as needed, by one
// caller at a time.
type Template struct {
	document []byte
	checked  *Checked
	parsed   *parsed // nil until it is needed
}

// parsed is a template that was read. Nothing changes it.
type parsed struct {
	loaded    *template.Template
	cluster   string              // its name in Omni
	resources []resource.Resource // what it asks for; only to be read
	described map[string]bool     // machines with a Machine document
}

// Load reads a template and checks it by Omni's own rules, without an Omni. The error is ErrTemplate with the library's
// message (which has no field paths).
func Load(document []byte) (*Template, error) { return (*Checked)(nil).Load(document) }

// read reads the template, unless that has been done. The error is ErrTemplate.
func (t *Template) read() error {
	if t.parsed != nil {
		return nil
	}

	loaded, err := template.Load(bytes.NewReader(t.document))
	if err != nil {
		return templateError(err)
	}

	if err = loaded.Validate(); err != nil {
		return templateError(err)
	}

	resources, err := loaded.Translate()
	if err != nil {
		return templateError(err)
	}

	cluster, err := loaded.ClusterName()
	if err != nil {
		return templateError(err)
	}

	described, err := describedMachines(t.document)
	if err != nil {
		return templateError(err)
	}

	t.parsed = &parsed{loaded: loaded, cluster: cluster, resources: resources, described: described}

	return nil
}

func templateError(err error) error {
	return fmt.Errorf("%w: %w", omni.ErrTemplate, err)
}

// describedMachines returns the machines that have a Machine document of their own in the template. Only there can a
// template set a lock.
func describedMachines(document []byte) (map[string]bool, error) {
	described := map[string]bool{}
	decoder := yaml.NewDecoder(bytes.NewReader(document))

	for {
		var header struct {
			Kind string `yaml:"kind"`
			Name string `yaml:"name"`
		}

		switch err := decoder.Decode(&header); {
		case errors.Is(err, io.EOF):
			return described, nil
		case err != nil:
			return nil, err
		}

		if header.Kind == "Machine" {
			described[header.Name] = true
		}
	}
}
