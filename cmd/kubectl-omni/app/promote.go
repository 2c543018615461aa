package app

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

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
			if err = refuseIfGitOwns(policy, "OmniRolloutPolicy", until, "metadata", "annotations", key); err != nil {
				return err
			}

			if _, err = io.WriteString(t.ErrOut, closedUntil(policy, args[1], ends)); err != nil {
				return err
			}

			if !yes {
				question := fmt.Sprintf("Let stage %s of %s begin until %s, whether the earlier stages have proved a change or not?", args[1], policy.Name, until)
				if err = t.confirm(command.Context(), question); err != nil {
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
			name, words.Time(stage.NextChange.Time), rollout.MaxPromotion.Hours())
	}

	return ""
}
