package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func (t *tool) overrideCommand() *cobra.Command {
	confirmed, reason := &confirmation{}, ""

	command := &cobra.Command{
		Use:   "override CLUSTER --reason TEXT",
		Short: "Let the changes of a cluster begin now that wait in an OmniRolloutPolicy",
		Long: `override shows the changes that wait for their turn, asks, and lets exactly these begin. It needs the right to override
omniclusters (role admin); the API server notes who did it and why. If Git owns that annotation it prints what to commit instead.`,
		Example: `  kubectl omni override prod-17 -n fleet --reason "the fix for tonight's outage"`,
		GroupID: groupDecide,
		Args:    cobra.ExactArgs(1), ValidArgsFunction: t.completeClusters,
		RunE: func(command *cobra.Command, args []string) error {
			if err := checkReason(reason); err != nil {
				return err
			}

			cluster, err := t.cluster(command.Context(), args[0])
			if err != nil {
				return err
			}

			if err = t.override(command.Context(), cluster, confirmed, reason); err != nil {
				return err
			}

			return t.told("omnicluster/%s: its changes may begin", cluster.Name)
		},
	}
	confirmed.addFlags(command)
	command.Flags().StringVar(&reason, "reason", "", "Why, in 10 characters at least. It is kept in status.rollout.override.")
	_ = command.MarkFlagRequired("reason")

	return command
}

// override lets the changes of a cluster begin that wait for their turn, after the user has seen and confirmed them.
func (t *tool) override(ctx context.Context, cluster *v1alpha1.OmniCluster, confirmed *confirmation, reason string) error {
	held, unlisted, err := heldChanges(cluster)
	if err != nil {
		return err
	}

	hash := cluster.Status.Rollout.Hash
	value := hash + " " + reason

	if err = refuseIfGitOwns(cluster, "OmniCluster", value, "metadata", "annotations", v1alpha1.AnnotationRolloutOverride); err != nil {
		return err
	}

	if err = changesOf(held, t.colour).write(t.ErrOut); err != nil {
		return err
	}

	all, left := len(held)+unlisted, ""

	if unlisted > 0 {
		left = fmt.Sprintf(", %d of which are not listed,", unlisted)
		_, _ = fmt.Fprintf(t.ErrOut, "... and %d more that are not listed\n", unlisted)

		if confirmed.hash == "" {
			return fmt.Errorf("%d of the %d changes that wait are not listed: to let them begin, too, repeat this with --hash %s", unlisted, all, hash)
		}
	}

	if err = confirmed.check(ctx, t, hash, fmt.Sprintf("Let %s%s of cluster %s begin now (hash %s)?", these(all), left, cluster.Name, hash)); err != nil {
		return err
	}

	// The API server records an override when the annotation changes. One of the same words was used up before.
	if cluster.Annotations[v1alpha1.AnnotationRolloutOverride] == value {
		if err = t.change(ctx, cluster, nil, map[string]any{v1alpha1.AnnotationRolloutOverride: nil}); err != nil {
			return err
		}
	}

	return t.change(ctx, cluster, nil, map[string]any{v1alpha1.AnnotationRolloutOverride: value})
}

// shortestReason is how many characters a reason has at least; the API refuses fewer.
const shortestReason = 10

// checkReason refuses a reason that the API would refuse after the user has confirmed everything.
func checkReason(reason string) error {
	if utf8.RuneCountInString(strings.TrimSpace(reason)) < shortestReason {
		return fmt.Errorf("--reason %q: say in %d characters at least why", reason, shortestReason)
	}

	return nil
}

// heldChanges are the changes that wait for their turn, as far as the status lists them, and how many more wait. An error
// says that none do, or why that is not known.
func heldChanges(cluster *v1alpha1.OmniCluster) (listed []v1alpha1.PlannedChange, unlisted int, err error) {
	plan, err := currentPlan(cluster)
	if err != nil {
		return nil, 0, err
	}

	if status := cluster.Status.Rollout; status == nil || status.State != v1alpha1.RolloutHeld {
		return nil, 0, errors.New("no changes of this cluster wait for their turn")
	}

	listed = slices.DeleteFunc(slices.Clone(plan.Changes), func(change v1alpha1.PlannedChange) bool { return !change.Held })

	return listed, max(0, int(plan.Held)-len(listed)), nil
}
