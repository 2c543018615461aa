package migrate

import (
	"fmt"
	"io"
	"strings"
)

// State is what became of an object.
type State string

// The states. Of an OmniCluster: TakenOver, Suspended, Observed, Waiting, Missing; of another kind Ready, NotReady, Waiting,
// Missing.
const (
	// TakenOver: Omni has what the object says, and the cluster carries our mark.
	TakenOver State = "taken over"
	// Suspended: its plan is empty, and it goes on when its user resumes it.
	Suspended State = "suspended"
	// Observed: the plan is not empty, so nothing was written.
	Observed State = "observed"
	// Ready: it is Ready.
	Ready State = "ready"
	// NotReady: it is not Ready, and was not before.
	NotReady State = "not ready"
	// Waiting: it was not finished in time.
	Waiting State = "waiting"
	// Missing: somebody deleted it.
	Missing State = "missing"
)

// Result is what became of one object.
type Result struct {
	// Object is the kind, the namespace and the name.
	Object string
	// State is what became of it.
	State State
	// Text says why.
	Text string

	namespace, name string
	cluster         bool
}

// Report is the end of a migration.
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

// problem is an error if not everything is as it was.
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
