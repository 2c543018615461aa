package migrate

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
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

// Outcome is what became of one object.
type Outcome string

// An OmniCluster has one of TakenOver, Suspended, Observed, Waiting, Missing; an object of another kind has one of
// Ready, NotReady, Waiting, Missing.
const (
	// TakenOver: Omni has what the object says, and the cluster carries our mark.
	TakenOver Outcome = "taken over"
	// Suspended: the plan is empty, and the cluster continues when its user resumes it.
	Suspended Outcome = "suspended"
	// Observed: the plan is not empty, so nothing was written.
	Observed Outcome = "observed"
	// Ready: the object is Ready.
	Ready Outcome = "ready"
	// NotReady: the object is not Ready, and was not before the migration.
	NotReady Outcome = "not ready"
	// Waiting: the object was not finished in time.
	Waiting Outcome = "waiting"
	// Missing: somebody deleted the object, or it could not be made.
	Missing Outcome = "missing"
)

// Result is the result for one object.
type Result struct {
	// Object is the kind, the namespace and the name.
	Object string
	// Outcome is what became of it.
	Outcome Outcome
	// Text says why.
	Text string

	namespace, name string
	takeover        string // the patch that takes an observed cluster over
	again           bool
}

// Report is the result of a migration.
type Report struct {
	Results []Result
}

func (r *Report) add(c *Converted, v verdict) {
	r.Results = append(r.Results, Result{
		Object: c.ID(), Outcome: v.outcome, Text: v.text, namespace: c.Namespace, name: c.Name, takeover: takeoverPatch(c), again: v.again,
	})
}

// takeoverPatch takes a cluster over with the deletion policy of the old object.
func takeoverPatch(c *Converted) string {
	wanted, ok := c.Object.(*v1alpha1.OmniCluster)
	if !ok {
		return `{"spec":{"changePolicy":"Apply"}}`
	}

	return fmt.Sprintf(`{"spec":{"changePolicy":"Apply","deletePolicy":{"orphan":%t,"destroyMachines":%t}}}`,
		wanted.Spec.DeletePolicy.Orphan, wanted.Spec.DeletePolicy.DestroyMachines)
}

func (r *Report) outcomeOf(c *Converted) Outcome {
	for _, result := range r.Results {
		if result.Object == c.ID() {
			return result.Outcome
		}
	}

	return ""
}

// problem returns an error if another run is needed: an object is not finished, or has something that this command gave it
// for the takeover. An object that is as it was before needs none, also if it is not Ready.
func (r *Report) problem() error {
	var left []string

	for _, of := range []struct {
		text    string
		belongs func(Result) bool
	}{
		{"%d clusters are only observed, because their plans are not empty", func(one Result) bool { return one.Outcome == Observed }},
		{"%d objects were not finished in time", func(one Result) bool { return one.Outcome == Waiting }},
		{"%d objects keep what this command gave them for the takeover", func(one Result) bool { return one.again }},
	} {
		if count := r.count(of.belongs); count > 0 {
			left = append(left, fmt.Sprintf(of.text, count))
		}
	}

	if len(left) == 0 {
		return nil
	}

	return fmt.Errorf("%s: see the report. Nothing was destroyed; run this again when you have dealt with them", strings.Join(left, ", and "))
}

func (r *Report) count(belongs func(Result) bool) int {
	count := 0

	for _, result := range r.Results {
		if belongs(result) {
			count++
		}
	}

	return count
}

// Print writes the report for people.
func (r *Report) Print(out io.Writer) error {
	w := &printer{out: out}

	if len(r.Results) > 0 {
		w.line("\nReport")
	}

	for _, result := range r.Results {
		if result.Outcome == Ready {
			continue
		}

		w.line("  %s: %s", result.Object, result.Outcome)

		for line := range strings.Lines(result.Text) {
			w.line("    %s", strings.TrimRight(line, "\n"))
		}

		if result.Outcome == Observed {
			w.line("    Change the documents until you like what is left, then take it over:")
			w.line("    kubectl patch omnicluster %s -n %s --type=merge -p '%s'", result.name, result.namespace, result.takeover)
			w.line("    What it destroys waits for your approval (docs/how-to/approve.md).")
		}
	}

	if unready := r.count(func(one Result) bool { return one.Outcome == NotReady }); unready > 0 {
		w.line("\n%d objects are not Ready, and were not before: the migration has not made them so, and does not wait for them.", unready)
	}

	return w.err
}
