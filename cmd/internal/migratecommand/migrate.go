package migratecommand

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"omni.texashpc.com/omni-cluster-operator/cmd/internal/interrupt"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/migrate"
	"omni.texashpc.com/omni-cluster-operator/pkg/version"
)

const migrateDescription = `migrate moves a management cluster from the operator that serves omni.texashpc.com from custom
resource definitions to this one, without a deletion reaching Omni. It runs where you run kubectl, as an administrator.

  plan  reads, and says what becomes of each object, and what has to be changed first
  run   does it, step by step; run again, it goes on where it was stopped or killed
  undo  puts everything back, as long as the definitions are not deleted

docs/how-to/migrate.md has the whole way, also by hand.`

const migrateRunDescription = `run takes the steps that "migrate plan" lists, each of them once: those that are done are not done again.

Its status is 0 if no other run is needed: each cluster is taken over, or suspended as it was, each other object is Ready, or
is not and was not before, and what you deleted stays so. The report names those that are not Ready. In every other case it
is 1: something is refused, a step was stopped, a cluster is only observed, an object was not finished in time, or one keeps
what the command gave it for the takeover (adopt, takeOwnership, deletePolicy.orphan) because it is not Ready or suspended.`

// errMigrationRefused ends plan with status 1 after it has printed everything.
var errMigrationRefused = errors.New("something is refused")

// Options are the flags of the command migrate.
type Options struct {
	// Connect finds the management cluster. Nil: Kubeconfig and Context select it, which are flags only then.
	Connect func() (*rest.Config, error)
	// Kubeconfig and Context select the management cluster.
	Kubeconfig, Context string
	// Deployments and WithoutDeployment say how the old operator runs, if its labels do not.
	Deployments       []string
	WithoutDeployment bool
	// Backup is the file that everything is saved in.
	Backup string
	// Output is the format of plan.
	Output string
	// Yes asks no question.
	Yes bool
	// QuietTime and Timeout are those of migrate.Options; only run waits.
	QuietTime, Timeout time.Duration
}

func (o *Options) addHubFlags(flags *pflag.FlagSet) {
	if o.Connect == nil {
		flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "Kubeconfig of the management cluster. Default: what kubectl uses.")
		flags.StringVar(&o.Context, "context", "", "Context of the kubeconfig. Default: its current one.")
	}

	flags.StringArrayVar(&o.Deployments, "deployment", nil, "Deployment of the old operator, as NAMESPACE/NAME, if it has not the labels of its chart. May be given several times.")
}

func (o *Options) addRunFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.WithoutDeployment, "without-deployment", false, "The old operator has no Deployment any more, and does not run anywhere.")
	flags.DurationVar(&o.QuietTime, "quiet-time", 15*time.Second, "How long nobody may write to the objects before their definitions are deleted.")
	flags.DurationVar(&o.Timeout, "timeout", 5*time.Minute, "How long one wait may take.")
	o.addChangeFlags(flags)
}

func (o *Options) addChangeFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Backup, "backup", "", "File that everything is saved in before it is changed. It has no content of Secrets, but all that the objects hold.")
	flags.BoolVarP(&o.Yes, "yes", "y", false, "Ask no question.")
}

// selected is the management cluster that Kubeconfig and Context select: as kubectl finds it, or with the ServiceAccount of a
// Pod.
func (o *Options) selected() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig

	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context}).ClientConfig()
}

// hub returns the configuration of the management cluster.
func (o *Options) hub() (*rest.Config, error) {
	connect := o.Connect
	if connect == nil {
		connect = o.selected
	}

	hub, err := connect()
	if err != nil {
		return nil, fmt.Errorf("find the management cluster: %w", err)
	}

	hub = rest.CopyConfig(hub)
	hub.UserAgent = version.Get().UserAgent("omni-controller-migrate")
	hub.WarningHandler = rest.NoWarnings{}

	return hub, nil
}

// migration makes the migration that the flags ask for.
func (o *Options) migration(progress io.Writer) (*migrate.Migration, error) {
	hub, err := o.hub()
	if err != nil {
		return nil, err
	}

	return migrate.New(migrate.Options{
		Hub: hub, Backup: o.Backup, Deployments: o.Deployments, WithoutDeployment: o.WithoutDeployment,
		QuietTime: o.QuietTime, Timeout: o.Timeout, Progress: progress,
	})
}

// New makes the migrate subcommand, with flags of its own for the management cluster.
func New(ctx context.Context) *cobra.Command { return NewFor(ctx, nil) }

// NewFor makes the migrate subcommand of a command that has flags for the management cluster: connect finds it by them.
func NewFor(ctx context.Context, connect func() (*rest.Config, error)) *cobra.Command {
	command := &cobra.Command{
		Use:   "migrate",
		Short: "Move from the operator with custom resource definitions",
		Long:  migrateDescription,
		Args:  cobra.NoArgs,
		// As in the command export: errors are lines of text for people, not log entries.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE:              func(command *cobra.Command, _ []string) error { return command.Help() },
		SilenceUsage:      true,
		SilenceErrors:     true,
	}
	command.AddCommand(newMigratePlanCommand(ctx, connect), newMigrateRunCommand(ctx, connect), newMigrateUndoCommand(ctx, connect))

	return command
}

func newMigratePlanCommand(ctx context.Context, connect func() (*rest.Config, error)) *cobra.Command {
	options := &Options{Connect: connect, Backup: "unused"}
	command := &cobra.Command{
		Use:           "plan",
		Short:         "Say what would be done, and what has to be changed first",
		Long:          "plan reads the management cluster and changes nothing. Its status is 1 if something is refused.",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			return runMigratePlan(ctx, options, command.OutOrStdout())
		},
	}

	options.addHubFlags(command.Flags())
	command.Flags().StringVarP(&options.Output, "output", "o", "text", "text, or yaml: the objects as they will be, for Git, with everything that they hold.")

	return command
}

func runMigratePlan(ctx context.Context, options *Options, stdout io.Writer) error {
	if options.Output != "text" && options.Output != "yaml" {
		return fmt.Errorf("--output: %q is not known, only text and yaml are", options.Output)
	}

	migration, err := options.migration(nil)
	if err != nil {
		return err
	}

	plan, err := migration.Plan(ctx)
	if err != nil {
		return err
	}

	if options.Output == "yaml" {
		text, err := plan.Manifests()
		if err != nil {
			return err
		}

		if _, err := stdout.Write(text); err != nil {
			return fmt.Errorf("write to standard output: %w", err)
		}
	} else if err := plan.Print(stdout); err != nil {
		return fmt.Errorf("write to standard output: %w", err)
	}

	if err := plan.Error(); err != nil {
		return fmt.Errorf("%w: %w", errMigrationRefused, err)
	}

	return nil
}

func newMigrateRunCommand(ctx context.Context, connect func() (*rest.Config, error)) *cobra.Command {
	options := &Options{Connect: connect}
	command := &cobra.Command{
		Use:           "run --backup FILE",
		Short:         "Move, or go on with a move that was stopped",
		Long:          migrateRunDescription,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			migration, err := options.migration(command.OutOrStdout())
			if err != nil {
				return err
			}

			if err := options.confirm(ctx, command, "This stops the old operator, deletes its definitions with all objects (they are in the backup), "+
				"and makes them anew for this operator. Omni keeps every cluster."); err != nil {
				return err
			}

			report, err := migration.Run(ctx)
			if printed := report.Print(command.OutOrStdout()); printed != nil {
				return errors.Join(err, printed)
			}

			return err
		},
	}

	options.addHubFlags(command.Flags())
	options.addRunFlags(command.Flags())

	return command
}

func newMigrateUndoCommand(ctx context.Context, connect func() (*rest.Config, error)) *cobra.Command {
	options := &Options{Connect: connect}
	command := &cobra.Command{
		Use:           "undo --backup FILE",
		Short:         "Put everything back, as long as the definitions are not deleted",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			migration, err := options.migration(command.OutOrStdout())
			if err != nil {
				return err
			}

			if err := options.confirm(ctx, command, "This gives the objects back to the old operator, and starts it."); err != nil {
				return err
			}

			return migration.Undo(ctx)
		},
	}

	options.addHubFlags(command.Flags())
	options.addChangeFlags(command.Flags())

	return command
}

// confirm asks the user, with the name of the management cluster, unless --yes is set.
func (o *Options) confirm(ctx context.Context, command *cobra.Command, what string) error {
	if o.Yes {
		return nil
	}

	hub, err := o.hub()
	if err != nil {
		return err
	}

	fmt.Fprintf(command.OutOrStdout(), "Management cluster: %s\n%s\nGo on? Type yes: ", redact.Line(hub.Host), what)

	answer, err := interrupt.Call(ctx, func() (string, error) {
		return bufio.NewReader(io.LimitReader(command.InOrStdin(), 100)).ReadString('\n')
	})
	if strings.TrimSpace(answer) == "yes" {
		return nil
	}

	if err != nil {
		return errors.New("nobody answered, and nothing was changed: type yes, or give --yes")
	}

	return errors.New("the answer was not yes, and nothing was changed")
}
