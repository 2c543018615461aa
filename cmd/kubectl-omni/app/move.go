package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"omni.texashpc.com/omni-cluster-operator/cmd/internal/exportcommand"
	"omni.texashpc.com/omni-cluster-operator/cmd/internal/migratecommand"
)

// exportCommand is the command of omni-controller. It reaches Omni only, with flags of its own.
func (t *tool) exportCommand(ctx context.Context) *cobra.Command {
	command := exportcommand.New(ctx)
	command.GroupID = groupMove
	command.PersistentPreRunE = func(command *cobra.Command, _ []string) error {
		return refuseFlags(command, func(string) bool { return true },
			"export does not use --%s, it asks the Omni of --endpoint and no management cluster: leave the flag out")
	}

	return command
}

// migrateCommand is the command of omni-controller, but reaches the management cluster by the flags of kubectl.
func (t *tool) migrateCommand(ctx context.Context) *cobra.Command {
	unused := []string{"namespace", "request-timeout", "cache-dir"} // it bounds its requests itself, and caches nothing

	command := migratecommand.NewFor(ctx, t.flags.ToRESTConfig)
	command.GroupID = groupMove
	command.PersistentPreRunE = func(command *cobra.Command, _ []string) error {
		return refuseFlags(command, func(name string) bool { return slices.Contains(unused, name) },
			"migrate does not use --%s, it works on the whole management cluster and bounds its requests itself: leave the flag out")
	}

	return command
}

// refuseFlags fails if a flag of kubectl is set that a command does not use: whoever sets it expects something of it. format
// is of the error, for the name of the flag.
func refuseFlags(command *cobra.Command, unused func(name string) bool, format string) (err error) {
	command.InheritedFlags().VisitAll(func(flag *pflag.Flag) {
		if err == nil && flag.Changed && unused(flag.Name) {
			err = fmt.Errorf(format, flag.Name)
		}
	})

	return err
}
