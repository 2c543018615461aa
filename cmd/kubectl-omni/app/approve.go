package app

import (
	"context"
	"errors"
	"fmt"

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
