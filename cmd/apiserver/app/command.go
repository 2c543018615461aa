package app

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
	"omni.texashpc.com/omni-cluster-operator/pkg/version"
)

const description = `omni-apiserver serves the API group omni.texashpc.com: it stores and validates
OmniConnections, OmniClusters and the other kinds, and never calls Omni itself.

It runs behind a kube-apiserver, which finds it through an APIService. Inside a cluster it needs
--etcd-data-dir (or --etcd-servers) and a serving certificate; outside, --kubeconfig as well.`

// helpColumns is the column at which the lines of --help are wrapped.
const helpColumns = 110

// NewCommand makes the omni-apiserver command. The server runs until the context ends.
func NewCommand(ctx context.Context) *cobra.Command {
	options := NewOptions()

	command := &cobra.Command{
		Use:   "omni-apiserver",
		Short: "Serve the API group omni.texashpc.com",
		Long:  description,
		Args:  cobra.NoArgs,
		// Version makes cobra answer --version.
		Version: version.Get().String(),
		// The usage has hundreds of lines; nobody would see the error above it.
		SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			apiserver.OmitBodies()

			if err := options.Complete(); err != nil {
				return err
			}

			if err := options.Validate(); err != nil {
				return err
			}

			return Run(ctx, options)
		},
	}

	sections := options.Flags()
	// Without this flag cobra would add one of its own, which also takes the shorthand -v.
	sections.FlagSet("omni").Bool("version", false, "Print the version and exit.")

	for _, section := range sections.FlagSets {
		command.Flags().AddFlagSet(section)
	}

	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w: see omni-apiserver --help", err)
	})
	cliflag.SetUsageAndHelpFunc(command, sections, helpColumns)

	command.AddCommand(newSnapshotCommand(ctx))

	return command
}
