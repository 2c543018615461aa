package app

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func (t *tool) planCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "plan CLUSTER",
		Short: "Show what would change in Omni, and what each change waits for",
		Long: `plan shows the changes that the controller has planned for a cluster and not made yet. It ends with the status 1 if there are
any, so that a script can ask.`,
		Example: "  # What is left to do for edge-01\n  kubectl omni plan edge-01 -n fleet",
		GroupID: groupLook,
		Args:    cobra.ExactArgs(1), ValidArgsFunction: t.completeClusters,
		RunE: func(command *cobra.Command, args []string) error {
			client, namespace, err := t.api()
			if err != nil {
				return err
			}

			cluster, err := client.OmniV1alpha1().OmniClusters(namespace).Get(command.Context(), args[0], metav1.GetOptions{})
			if err != nil {
				return err
			}

			if err = writePlan(t.Out, cluster, t.colour); err != nil {
				return err
			}

			if plan := cluster.Status.Plan; plan != nil && len(plan.Changes) > 0 {
				return errChanges
			}

			return nil
		},
	}
}

// writePlan shows the plan that a status has.
func writePlan(out io.Writer, cluster *v1alpha1.OmniCluster, colour bool) error {
	if cluster.Status.ObservedGeneration != cluster.Generation {
		if _, err := fmt.Fprintf(out, "The controller has not looked at generation %d yet; this is the plan of generation %d.\n",
			cluster.Generation, cluster.Status.ObservedGeneration); err != nil {
			return err
		}
	}

	plan := cluster.Status.Plan
	if plan == nil || len(plan.Changes) == 0 {
		_, err := fmt.Fprintln(out, "Nothing is left to do.")

		return err
	}

	if err := changesOf(plan.Changes, colour).write(out); err != nil {
		return err
	}

	var text strings.Builder

	if plan.OmittedChanges > 0 {
		fmt.Fprintf(&text, "... and %d more\n", plan.OmittedChanges)
	}

	if needsApproval(plan) {
		fmt.Fprintf(&text, "\nWaits for an approval: kubectl omni approve %s -n %s\n", cluster.Name, cluster.Namespace)
	}

	if rollout := cluster.Status.Rollout; plan.Held > 0 && rollout != nil {
		fmt.Fprintf(&text, "\nWaits for its turn (%s, hash %s): %s\n", rollout.Reason, rollout.Hash, messageOf(cluster, v1alpha1.ConditionHeld))
	}

	if plan.Diff != "" {
		text.WriteString("\n" + plan.Diff)
	}

	_, err := io.WriteString(out, text.String())

	return err
}

func needsApproval(plan *v1alpha1.OmniClusterPlan) bool {
	for _, change := range plan.Changes {
		if change.NeedsApproval {
			return true
		}
	}

	return false
}

// changesOf lists changes with what each waits for.
func changesOf(changes []v1alpha1.PlannedChange, colour bool) *table {
	drawn := &table{colour: colour}
	drawn.add(plain, "ACTION", "TYPE", "ID", "DESTROYS", "WAITS FOR", "KIND")

	for _, change := range changes {
		var waits []string

		if change.NeedsApproval {
			waits = append(waits, "approval")
		}

		if change.Held {
			waits = append(waits, "turn")
		}

		tone, destroys := plain, ""
		if change.Destructive {
			tone, destroys = red, "yes"
		}

		kind, _, _ := strings.Cut(change.Type, ".")
		drawn.add(tone, string(change.Action), kind, change.ID, destroys, strings.Join(waits, ", "), string(change.Kind))
	}

	return drawn
}
