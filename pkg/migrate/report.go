package migrate

import (
	"fmt"
	"io"
	"strings"
)

// State is the result for one object.
type State string

// An OmniCluster has one of TakenOver, Suspended, Observed, Waiting, Missing; an object of another kind has one of
// Ready, NotReady, Waiting, Missing.
const (
	// TakenOver: Omni has what the object says, and the cluster carries our mark.
	TakenOver State = "taken over"
	// Suspended: the plan is empty, and the cluster continues when its user resumes it.
	Suspended State = "suspended"
	// Observed: the plan is not empty, so nothing was written.
	Observed State = "observed"
	// Ready: the object is Ready.
	Ready State = "ready"
	// NotReady: the object is not Ready, and was not before the migration.
	NotReady State = "not ready"
	// Waiting: the object was not finished in time.
	Waiting State = "waiting"
	// Missing: somebody deleted the object, or it could not be made.
	Missing State = "missing"
)

// Result is the result for one object.
type Result struct {
	// Object is the kind, the namespace and the name.
	Object string
	// State is the result.
	State State
	// Text says why.
	Text string

	namespace, name string
	cluster         bool
}

// Report is the result of a migration.
type Report struct {
	Results []Result
}

func (r *Report) add(c *Converted, v verdict) {
	r.Results = append(r.Results, Result{
		Object: c.ID(), State: v.state, Text: v.text, namespace: c.Namespace, name: c.Name, cluster: c.Kind == "OmniCluster",
	})
}

func (r *Report) state(c *Converted) State {
	for _, result := range r.Results {
		if result.Object == c.ID() {
			return result.State
		}
	}

	return ""
}

// problem returns an error unless every object is as it was before.
func (r *Report) problem() error {
	observed, waiting := 0, 0

	for _, result := range r.Results {
		switch result.State {
		case Observed:
			observed++
		case Waiting:
			waiting++
		case TakenOver, Suspended, Ready, NotReady, Missing:
		}
	}

	if observed+waiting == 0 {
		return nil
	}

	return fmt.Errorf("%d clusters are only observed, because their plans are not empty, and %d objects were not finished in time: see the report. "+
		"Nothing was destroyed; run this again when you have dealt with them", observed, waiting)
}

// Print writes the report for people.
func (r *Report) Print(out io.Writer) error {
	w := &printer{out: out}

	if len(r.Results) > 0 {
		w.line("\nReport")
	}

	for _, result := range r.Results {
		if result.State == Ready {
			continue
		}

		w.line("  %s: %s", result.Object, result.State)

		for line := range strings.Lines(result.Text) {
			w.line("    %s", strings.TrimRight(line, "\n"))
		}

		if result.cluster && result.State == Observed {
			w.line("    Change the documents until you like what is left, then take it over:")
			w.line("    kubectl patch omnicluster %s -n %s --type=merge -p '{\"spec\":{\"changePolicy\":\"Apply\"}}'", result.name, result.namespace)
			w.line("    What it destroys waits for your approval (docs/how-to/approve.md).")
		}
	}

	return w.err
}
