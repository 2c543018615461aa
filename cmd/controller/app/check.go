package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"omni.texashpc.com/omni-cluster-operator/pkg/hub"
)

const checkDescription = `check looks whether an installation works, with the account and from the place of a controller: no custom
resource definition collides with the API, kube-apiserver serves all of it, objects can be read through it, the account
has the rights that the controller needs, and a controller is at work. Nothing is changed. It prints a line for each, and
ends with an error if one fails. "helm test" runs it in a Pod.`

// checkPause is the pause between two tries of a check.
const checkPause = time.Second

// CheckOptions are the flags of omni-controller check.
type CheckOptions struct {
	// Controller are the flags that check shares with the controller it checks.
	Controller Options
	// Timeout is how long each check is repeated: a new installation may need a moment.
	Timeout time.Duration
}

// AddFlags adds the flags.
func (o *CheckOptions) AddFlags(flags *pflag.FlagSet) {
	c := &o.Controller
	flags.StringVar(&c.Kubeconfig, "kubeconfig", c.Kubeconfig, "Kubeconfig of the management cluster. Inside a cluster, the pod's service account is used without it.")
	flags.StringVar(&c.Namespace, "namespace", c.Namespace, "The namespace that the controller serves. Default: "+namespaceEnvironment+" of the environment.")
	flags.BoolVar(&c.AllNamespaces, "all-namespaces", c.AllNamespaces, "The controller serves every namespace.")
	flags.StringVar(&c.RoleBinding, flagRoleBinding, c.RoleBinding, "RoleBinding of which the controller keeps a copy, or with --all-namespaces removes those that others have left, which takes rights. Default: none.")
	flags.StringSliceVar(&c.ExportNamespaces, flagExportNamespaces, c.ExportNamespaces, "Namespaces (separated by commas) besides its own to which exports may write their Secrets. Default: none.")
	flags.StringVar(&c.LeaderElectionNamespace, "leader-election-namespace", c.LeaderElectionNamespace, "Namespace of the controller's lease. Default: --namespace.")
	flags.BoolVar(&c.Metrics.Secure, "metrics-secure", c.Metrics.Secure, "The controller serves its metrics to authorised readers only, which takes two more rights.")
	flags.BoolVar(&c.Rollouts, "rollouts", c.Rollouts, "The controller works on OmniRolloutPolicies, which takes rights.")
	flags.StringVar(&c.HubID, hub.FlagID, c.HubID, "The controller has an ID of the hub, and needs no right to read the UID of kube-system.")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "How long each check is tried.")
}

// Validate returns all problems of the flags at once.
func (o *CheckOptions) Validate() error {
	problems := []error{o.Controller.Validate()}
	if o.Timeout <= 0 {
		problems = append(problems, errors.New("--timeout must be positive"))
	}

	return errors.Join(problems...)
}

// newCheckCommand makes the check subcommand.
func newCheckCommand(ctx context.Context) *cobra.Command {
	options := &CheckOptions{Controller: *NewOptions(), Timeout: time.Minute}

	command := &cobra.Command{
		Use:           "check (--namespace NAMESPACE | --all-namespaces)",
		Short:         "Look whether an installation works",
		Long:          checkDescription,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := options.Validate(); err != nil {
				return err
			}

			config, err := options.Controller.hub()
			if err != nil {
				return err
			}

			checks, err := newInstallationChecks(config, &options.Controller)
			if err != nil {
				return err
			}

			return runChecks(ctx, checks, options.Timeout, command.OutOrStdout())
		},
	}

	options.AddFlags(command.Flags())

	return command
}

// installationCheck is a condition that an installation has to meet.
type installationCheck struct {
	says string
	run  func(context.Context) error
}

// runChecks repeats each check until it succeeds or the time is over, and prints a line for it.
func runChecks(ctx context.Context, checks []installationCheck, timeout time.Duration, out io.Writer) error {
	failed := 0

	for _, check := range checks {
		result := "ok      " + check.says

		if err := try(ctx, check, timeout); err != nil {
			failed++
			result = fmt.Sprintf("FAILED  %s: %v", check.says, err)
		}

		if _, err := fmt.Fprintln(out, result); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
	}

	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(checks))
	}

	return nil
}

// try repeats a check until it succeeds, and returns the last result.
func try(ctx context.Context, check installationCheck, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	return until(ctx, checkPause, check.run, func(error) {})
}
