package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
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

	if err = refuseToFightGit(cluster, "OmniCluster", value, "metadata", "annotations", v1alpha1.AnnotationRolloutOverride); err != nil {
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

	if err = confirmed.check(t, hash, fmt.Sprintf("Let %s%s of cluster %s begin now (hash %s)?", these(all), left, cluster.Name, hash)); err != nil {
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
// says that none do.
func heldChanges(cluster *v1alpha1.OmniCluster) (listed []v1alpha1.PlannedChange, unlisted int, err error) {
	status, plan := cluster.Status.Rollout, cluster.Status.Plan
	if status == nil || status.State != v1alpha1.RolloutHeld || plan == nil {
		return nil, 0, errors.New("no changes of this cluster wait for their turn")
	}

	listed = slices.DeleteFunc(slices.Clone(plan.Changes), func(change v1alpha1.PlannedChange) bool { return !change.Held })

	return listed, max(0, int(plan.Held)-len(listed)), nil
}

// defaultPromotion is how long a stage is promoted unless the user says otherwise.
const defaultPromotion = 24 * time.Hour

func (t *tool) promoteCommand() *cobra.Command {
	length, yes := defaultPromotion, false

	command := &cobra.Command{
		Use:   "promote POLICY STAGE",
		Short: "Let a stage of an OmniRolloutPolicy begin without the earlier ones, for a time",
		Example: `  # Production may begin until tomorrow; windows, freezes and limits count
  kubectl omni promote production prod -n fleet --for 24h`,
		GroupID: groupDecide,
		Args:    cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			policy, err := t.policy(command.Context(), args[0])
			if err != nil {
				return err
			}

			ends := t.now().Add(length).UTC()
			if err = checkPromotion(policy, args[1], length); err != nil {
				return err
			}

			key, until := v1alpha1.AnnotationPromotePrefix+args[1], ends.Format(time.RFC3339)
			if err = refuseToFightGit(policy, "OmniRolloutPolicy", until, "metadata", "annotations", key); err != nil {
				return err
			}

			if _, err = io.WriteString(t.ErrOut, closedUntil(policy, args[1], ends)); err != nil {
				return err
			}

			if !yes {
				if err = t.confirm(fmt.Sprintf("Let stage %s of %s begin until %s, whether the earlier stages have proved a change or not?", args[1], policy.Name, until)); err != nil {
					return err
				}
			}

			if err = t.change(command.Context(), policy, nil, map[string]any{key: until}); err != nil {
				return err
			}

			return t.told("omnirolloutpolicy/%s: stage %s is promoted until %s", policy.Name, args[1], until)
		},
	}
	command.Flags().DurationVar(&length, "for", length, "How long, at most 168h.")
	command.Flags().BoolVarP(&yes, "yes", "y", false, "Ask no question.")

	return command
}

// checkPromotion says why a stage cannot be promoted for a time, or need not be.
func checkPromotion(policy *v1alpha1.OmniRolloutPolicy, name string, length time.Duration) error {
	number := slices.IndexFunc(policy.Spec.Stages, func(one v1alpha1.RolloutStage) bool { return one.Name == name })

	switch {
	case number < 0:
		return fmt.Errorf("OmniRolloutPolicy %q has no stage %q", policy.Name, name)
	case number == 0 && policy.Spec.Stages[0].Promotion != v1alpha1.PromotionManual:
		return fmt.Errorf("stage %q is the first one, and begins without a promotion", name)
	case length <= 0 || length > rollout.MaxPromotion:
		return errors.New("--for must be more than nothing, and at most 168h")
	default:
		return nil
	}
}

// closedUntil warns of a promotion that ends before the stage opens; empty if it does not.
func closedUntil(policy *v1alpha1.OmniRolloutPolicy, name string, ends time.Time) string {
	for _, stage := range policy.Status.Stages {
		if stage.Name != name || stage.Open || stage.NextChange == nil || stage.NextChange.Time.Before(ends) {
			continue
		}

		return fmt.Sprintf("Warning: stage %s opens %s, when the promotion is over: nothing begins by it. Give a longer time with --for, at most %.0fh.\n",
			name, stage.NextChange.UTC().Format(time.RFC3339), rollout.MaxPromotion.Hours())
	}

	return ""
}

func (t *tool) holdCommand() *cobra.Command {
	release := false

	command := &cobra.Command{
		Use:   "hold POLICY",
		Short: "Let nothing begin in an OmniRolloutPolicy until it is taken back (spec.hold)",
		Long: `hold sets spec.hold of the policy: nothing begins until it is released; what has begun goes on. It does so even if Git owns that
field, because it is the emergency stop, and says then what to commit, so that Flux or Argo CD does not take it back. --release
does not write what Git owns.`,
		Example: `  # The emergency stop; what has begun goes on
  kubectl omni hold production -n fleet

  kubectl omni hold production -n fleet --release`,
		GroupID: groupDecide,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			policy, err := t.policy(command.Context(), args[0])
			if err != nil {
				return err
			}

			switch {
			case release && !policy.Spec.Hold:
				return t.told("omnirolloutpolicy/%s: it is not on hold", policy.Name)
			case !release && policy.Spec.Hold:
				return t.told("omnirolloutpolicy/%s: it is on hold already", policy.Name)
			case release:
				if err = refuseToFightGit(policy, "OmniRolloutPolicy", false, "spec", "hold"); err != nil {
					return err
				}
			}

			if err = t.change(command.Context(), policy, map[string]any{"hold": !release}, nil); err != nil {
				return err
			}

			if release {
				return t.told("omnirolloutpolicy/%s: changes begin again", policy.Name)
			}

			if err = t.told("omnirolloutpolicy/%s: nothing begins until it is released", policy.Name); err != nil {
				return err
			}

			if manager := ownedByGit(policy.GetManagedFields(), "spec", "hold"); manager != "" {
				return t.told("spec.hold comes from Git (%s), which takes this back at its next look: commit hold: true there", manager)
			}

			return nil
		},
	}
	command.Flags().BoolVar(&release, "release", false, "Take it back.")

	return command
}
