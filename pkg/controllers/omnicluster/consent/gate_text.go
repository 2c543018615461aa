package consent

import (
	"fmt"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// heldMessage returns the message about held changes: which ones wait, what for, and by which policy.
func (d Decision) heldMessage(a *admission) string {
	waiting := d.WaitingForTurn()
	if len(waiting) == 0 {
		return ""
	}

	verb := "wait"
	if len(waiting) == 1 {
		verb = "waits"
	}

	what := a.message
	if a.next.AdmittedSince != nil {
		what = "until the cluster is Ready with the changes of its last turn"
	}

	text := fmt.Sprintf("%d of %d changes %s (%s): %s", len(waiting), len(d.facts.Plan.Changes), verb, kindsText(waiting), what)
	if place := d.facts.Gate.Place; place != "" {
		text += "; by " + place
	}

	return text + usedText(a.next)
}

// usedText says that an override of the changes that wait has had its turn. Who sees the annotation may wonder.
func usedText(next *v1alpha1.OmniClusterRollout) string {
	override := next.Override
	if override == nil || override.UsedTime == nil || override.Hash != next.Hash {
		return ""
	}

	return fmt.Sprintf("; the override of %s has been used up", words.Time(override.Time.Time))
}

// kindsText lists what changes are about: each version, and the number of the others.
func kindsText(changes []plan.Change) string {
	var (
		parts []string
		order []string
	)

	counts := map[string]int{}

	for _, change := range changes {
		if change.Part != "" {
			parts = append(parts, fmt.Sprintf("%s v%s -> v%s", change.Part, change.From, change.To))

			continue
		}

		kind := string(change.Kind)
		if kind == "" {
			kind = "what depends on them"
		}

		if counts[kind] == 0 {
			order = append(order, kind)
		}

		counts[kind]++
	}

	for _, kind := range order {
		if counts[kind] > 1 {
			kind = fmt.Sprintf("%s x%d", kind, counts[kind])
		}

		parts = append(parts, kind)
	}

	return strings.Join(parts, ", ")
}
