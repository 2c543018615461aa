package app

import "github.com/spf13/cobra"

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
