package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/migrate"
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
what the command gave it for the takeover (adopt, takeOwnership) because it is not Ready.`

// errMigrationRefused ends plan with status 1 after it has printed everything.
var errMigrationRefused = errors.New("something is refused")

// migrateOptions are the flags of the command migrate.
type migrateOptions struct {
	migrate.Options

	// output is the format of plan.
	output string
	// yes asks no question.
	yes bool
}

func (o *migrateOptions) addDeploymentFlag(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.Deployments, "deployment", nil, "Deployment of the old operator, as NAMESPACE/NAME, if it has not the labels of its chart. May be given several times.")
}

func (o *migrateOptions) addRunFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.WithoutDeployment, "without-deployment", false, "The old operator has no Deployment any more, and does not run anywhere.")
	flags.DurationVar(&o.QuietTime, "quiet-time", 15*time.Second, "How long nobody may write to the objects before their definitions are deleted.")
	flags.DurationVar(&o.Timeout, "timeout", 5*time.Minute, "How long one wait may take.")
	o.addChangeFlags(flags)
}

func (o *migrateOptions) addChangeFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Backup, "backup", "", "File that everything is saved in before it is changed. It has no content of Secrets, but all that the objects hold.")
	flags.BoolVarP(&o.yes, "yes", "y", false, "Ask no question.")
}

// migrateCommand reaches the management cluster by the flags of kubectl.
func (t *tool) migrateCommand() *cobra.Command {
	unused := []string{"namespace", "request-timeout", "cache-dir"} // it bounds its requests itself, and caches nothing

	command := &cobra.Command{
		Use:     "migrate",
		Short:   "Move from the operator with custom resource definitions",
		Long:    migrateDescription,
		GroupID: groupMove,
		Args:    cobra.NoArgs,
		PersistentPreRunE: func(command *cobra.Command, _ []string) error {
			return refuseFlags(command, func(name string) bool { return slices.Contains(unused, name) },
				"migrate does not use --%s, it works on the whole management cluster and bounds its requests itself: leave the flag out")
		},
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(t.migratePlanCommand(), t.migrateRunCommand(), t.migrateUndoCommand())

	return command
}

// migration makes the migration that the flags ask for.
func (t *tool) migration(options migrate.Options, progress io.Writer) (*migrate.Migration, error) {
	hub, err := t.config()
	if err != nil {
		return nil, err
	}

	hub.WarningHandler = rest.NoWarnings{}
	options.Hub, options.Progress = hub, progress

	return migrate.New(options)
}

func (t *tool) migratePlanCommand() *cobra.Command {
	options := &migrateOptions{Options: migrate.Options{Backup: "unused"}}
	command := &cobra.Command{
		Use:   "plan",
		Short: "Say what would be done, and what has to be changed first",
		Long:  "plan reads the management cluster and changes nothing. Its status is 1 if something is refused.",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return t.migratePlan(command.Context(), options) },
	}

	options.addDeploymentFlag(command.Flags())
	command.Flags().StringVarP(&options.output, "output", "o", "text", "text, or yaml: the objects as they will be, for Git, with everything that they hold.")

	return command
}

func (t *tool) migratePlan(ctx context.Context, options *migrateOptions) error {
	if options.output != "text" && options.output != "yaml" {
		return fmt.Errorf("--output: %q is not known, only text and yaml are", options.output)
	}

	migration, err := t.migration(options.Options, nil)
	if err != nil {
		return err
	}

	plan, err := migration.Plan(ctx)
	if err != nil {
		return err
	}

	if options.output == "yaml" {
		text, err := plan.Manifests()
		if err != nil {
			return err
		}

		if _, err := t.Out.Write(text); err != nil {
			return fmt.Errorf("write to standard output: %w", err)
		}
	} else if err := plan.Print(t.Out); err != nil {
		return fmt.Errorf("write to standard output: %w", err)
	}

	if err := plan.Error(); err != nil {
		return fmt.Errorf("%w: %w", errMigrationRefused, err)
	}

	return nil
}

func (t *tool) migrateRunCommand() *cobra.Command {
	options := &migrateOptions{}
	command := &cobra.Command{
		Use:   "run --backup FILE",
		Short: "Move, or go on with a move that was stopped",
		Long:  migrateRunDescription,
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			migration, err := t.confirmedMigration(command.Context(), options, "This stops the old operator, deletes its definitions with "+
				"all objects (they are in the backup), and makes them anew for this operator. Omni keeps every cluster.")
			if err != nil {
				return err
			}

			report, err := migration.Run(command.Context())

			return errors.Join(err, report.Print(t.Out))
		},
	}

	options.addDeploymentFlag(command.Flags())
	options.addRunFlags(command.Flags())

	return command
}

func (t *tool) migrateUndoCommand() *cobra.Command {
	options := &migrateOptions{}
	command := &cobra.Command{
		Use:   "undo --backup FILE",
		Short: "Put everything back, as long as the definitions are not deleted",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			migration, err := t.confirmedMigration(command.Context(), options, "This gives the objects back to the old operator, and starts it.")
			if err != nil {
				return err
			}

			return migration.Undo(command.Context())
		},
	}

	options.addDeploymentFlag(command.Flags())
	options.addChangeFlags(command.Flags())

	return command
}

// confirmedMigration asks the user, with the name of the management cluster, unless --yes is set.
func (t *tool) confirmedMigration(ctx context.Context, options *migrateOptions, what string) (*migrate.Migration, error) {
	migration, err := t.migration(options.Options, t.Out)
	if err != nil || options.yes {
		return migration, err
	}

	hub, err := t.config()
	if err != nil {
		return nil, err
	}

	return migration, t.confirm(ctx, fmt.Sprintf("Management cluster: %s\n%s\nGo on?", redact.Line(hub.Host), what))
}
