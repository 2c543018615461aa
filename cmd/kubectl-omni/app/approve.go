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

// confirmation is how a user confirms a change that names a hash.
type confirmation struct {
	yes  bool
	hash string
}

func (c *confirmation) addFlags(command *cobra.Command) {
	command.Flags().BoolVarP(&c.yes, "yes", "y", false, "Ask no question; needs --hash.")
	command.Flags().StringVar(&c.hash, "hash", "", "The hash that you have looked at: with another one nothing is done.")
}

// check asks whether it is this that the user means.
func (c *confirmation) check(ctx context.Context, t *tool, hash, question string) error {
	switch {
	case c.yes && c.hash == "":
		return errors.New("--yes needs --hash: what is there now may be something else than what you have looked at")
	case c.hash != "" && c.hash != hash:
		return fmt.Errorf("the hash is %s now, and not %s: look again", hash, c.hash)
	case c.yes:
		return nil
	default:
		return t.confirm(ctx, question)
	}
}

func (t *tool) approveCommand() *cobra.Command {
	confirmed := &confirmation{}

	command := &cobra.Command{
		Use:   "approve CLUSTER",
		Short: "Approve the destroying changes of a cluster that wait for it (spec.approvedPlan)",
		Long: `approve shows the destroying changes of the plan one by one, asks, and writes the plan's hash to spec.approvedPlan. If Git owns that
field it prints what to commit instead.`,
		Example: `  # Look, and approve
  kubectl omni approve edge-01 -n fleet

  # In a script: only what was looked at
  kubectl omni approve edge-01 -n fleet --yes --hash "$hash"`,
		GroupID: groupDecide,
		Args:    cobra.ExactArgs(1), ValidArgsFunction: t.completeClusters,
		RunE: func(command *cobra.Command, args []string) error {
			cluster, err := t.cluster(command.Context(), args[0])
			if err != nil {
				return err
			}

			destroying, err := toApprove(cluster)
			if err != nil {
				return err
			}

			hash := cluster.Status.Plan.Hash
			if err = refuseIfGitOwns(cluster, "OmniCluster", hash, "spec", "approvedPlan"); err != nil {
				return err
			}

			if err = changesOf(destroying, t.colour).write(t.ErrOut); err != nil {
				return err
			}

			if err = confirmed.check(command.Context(), t, hash, fmt.Sprintf("Approve %s of cluster %s (hash %s)?", these(len(destroying)), cluster.Name, hash)); err != nil {
				return err
			}

			if err = t.change(command.Context(), cluster, map[string]any{"approvedPlan": hash}, nil); err != nil {
				return err
			}

			return t.told("omnicluster/%s: plan %s is approved", cluster.Name, hash)
		},
	}
	confirmed.addFlags(command)

	return command
}

// toApprove are the changes that an approval is for. An error says why there is nothing to approve.
func toApprove(cluster *v1alpha1.OmniCluster) ([]v1alpha1.PlannedChange, error) {
	plan, err := currentPlan(cluster)

	switch {
	case err != nil:
		return nil, err
	case plan.Hash == "":
		return nil, errors.New("nothing waits for an approval")
	case plan.OmittedChanges > 0:
		return nil, fmt.Errorf("the plan has %d changes more than are shown: read all of it in the log of omni-controller (-v=2, the line with the hash %s), then "+
			`kubectl patch omnicluster %s -n %s --field-manager=%s --type=merge -p '{"spec":{"approvedPlan":"%s"}}'`,
			plan.OmittedChanges, plan.Hash, cluster.Name, cluster.Namespace, v1alpha1.FieldManagerByHand, plan.Hash)
	case cluster.Spec.ApprovedPlan == plan.Hash:
		return nil, errors.New("this plan is approved already")
	}

	var destroying []v1alpha1.PlannedChange

	for _, change := range plan.Changes {
		if change.Destructive {
			destroying = append(destroying, change)
		}
	}

	return destroying, nil
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
				if err = refuseIfGitOwns(policy, "OmniRolloutPolicy", false, "spec", "hold"); err != nil {
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

			if manager := ownedByGit(policy, "spec", "hold"); manager != "" {
				return t.told("spec.hold comes from Git (%s), which takes this back at its next look: commit hold: true there", manager)
			}

			return nil
		},
	}
	command.Flags().BoolVar(&release, "release", false, "Take it back.")

	return command
}

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
