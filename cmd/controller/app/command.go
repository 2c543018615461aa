package app

import (
	"context"
	"flag"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/version"
)

const description = `omni-controller makes Omni follow the objects of the API group omni.texashpc.com.

It serves one namespace (its own, unless --namespace says otherwise) and needs rights there only,
and to read eight names of custom resource definitions: it refuses to start beside those of the
operator that served the same group before, because deleting them would destroy real clusters.`

// NewCommand makes the omni-controller command. The controller runs until the
// context ends.
func NewCommand(ctx context.Context) *cobra.Command {
	options := NewOptions()

	command := &cobra.Command{
		Use:   "omni-controller",
		Short: "Make Omni follow the objects of omni.texashpc.com",
		Long:  description,
		Args:  cobra.NoArgs,
		// Version makes cobra answer --version.
		Version: version.Get().String(),
		RunE: func(*cobra.Command, []string) error {
			if err := options.Validate(); err != nil {
				return err
			}

			if err := setVerbosity(options.Verbosity); err != nil {
				return err
			}

			ctrl.SetLogger(klog.NewKlogr())

			return Run(ctx, options)
		},
	}

	options.AddFlags(command.Flags())
	command.Flags().Bool("version", false, "Print the version and exit.")
	command.AddCommand(newCheckCommand(ctx))

	return command
}

// setVerbosity sets klog's verbosity, which klog takes only from its own flag.
func setVerbosity(verbosity int) error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)

	if err := flags.Set("v", strconv.Itoa(verbosity)); err != nil {
		return fmt.Errorf("set the verbosity of the log: %w", err)
	}

	return nil
}
