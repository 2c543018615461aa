package migrate

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Print writes the plan for people. It shows no content of the objects, which may have tokens in them: Manifests does.
func (p *Plan) Print(out io.Writer) error {
	w := &printer{out: out}

	w.operator(p.state)

	for _, c := range p.Objects {
		w.object(c)
	}

	w.list("Notes", p.Notes)
	w.list("Problems", p.Problems)
	w.steps()

	switch {
	case p.Refused():
		w.line("\nRefused: %d of %d objects, and %d problems besides. Nothing was changed.", p.refusedObjects(), len(p.Objects), len(p.Problems))
	default:
		w.line("\nReady: %d objects can be moved. Nothing was changed.", len(p.Objects))
	}

	return w.err
}

// printer remembers the first error.
type printer struct {
	out io.Writer
	err error
}

func (w *printer) line(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, format+"\n", args...)
	}
}

// operator prints the parts of the other operator.
func (w *printer) operator(s *state) {
	w.line("The operator with custom resource definitions")

	for i := range s.Deployments {
		replicas, _, _ := unstructured.NestedInt64(s.Deployments[i].Object, "spec", "replicas")
		w.line("  %s: %d replicas", idOf(&s.Deployments[i]), replicas)
	}

	for i := range s.Webhooks {
		w.line("  %s", idOf(&s.Webhooks[i]))
	}

	w.line("  %d definitions, %d objects", len(s.Definitions), len(s.Objects))

	for i := range s.Owned {
		w.line("  Secret %s/%s belongs to an object, and would be collected with it", s.Owned[i].Namespace, s.Owned[i].Name)
	}
}

// object prints what becomes of one object.
func (w *printer) object(c *Converted) {
	w.line("\n%s", c.ID())

	for _, refusal := range c.Refusals {
		w.line("  refused  %s", refusal)
	}

	for _, change := range c.Changes {
		w.line("  differs  %s", change)
	}

	for _, warning := range c.Warnings {
		w.line("  warning  %s", warning)
	}
}

func (w *printer) list(title string, entries []string) {
	if len(entries) == 0 {
		return
	}

	w.line("\n%s", title)

	for _, entry := range entries {
		w.line("  - %s", entry)
	}
}

func (w *printer) steps() {
	w.line("\nSteps of run")

	for i, step := range stepTitles() {
		w.line("  %2d. %s", i+1, step)
	}
}

// Manifests returns the objects as they will be after the takeover as YAML documents, for Git. A permission that ends
// with the takeover is not in them: in Git it would stay for good. Contents are not redacted.
func (p *Plan) Manifests() ([]byte, error) {
	var all []byte

	for _, c := range p.Objects {
		if c.Object == nil {
			continue
		}

		fields, err := written(c.Object)
		if err != nil {
			return nil, err
		}

		all = append(all, "---\n"...)

		if c.Permission != "" {
			unstructured.RemoveNestedField(fields, "spec", c.Permission)
			all = fmt.Appendf(all, "# run sets spec.%s: true for the takeover, and false after it. Do not keep it in Git.\n", c.Permission)
		}

		text, err := yaml.Marshal(fields)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.ID(), err)
		}

		all = append(all, text...)
	}

	return all, nil
}

// written returns an object as it is sent: without a status, and without the fields that the server sets.
func written(obj runtime.Object) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("write %T: %w", obj, err)
	}

	delete(fields, "status")
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")

	return fields, nil
}
