package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/startup"
)

// standardStream in place of a file name means standard input or output.
const standardStream = "-"

// newSnapshotCommand makes "omni-apiserver snapshot".
func newSnapshotCommand(ctx context.Context) *cobra.Command {
	command := &cobra.Command{
		Use:   "snapshot",
		Short: "Save, look into and restore copies of all objects",
		Long: `Save, look into and restore copies of all objects.

A snapshot is the whole etcd at one moment, in the format of etcd's own tools. Objects in it are encrypted
where --encryption-provider-config says so: keep the keys as well.`,
		Args: cobra.NoArgs,
	}

	// Otherwise this command would print the help of the server, with its 200 flags.
	plain := &cobra.Command{}
	command.SetHelpFunc(plain.HelpFunc())
	command.SetUsageFunc(plain.UsageFunc())
	command.SetFlagErrorFunc(func(failed *cobra.Command, err error) error {
		return fmt.Errorf("%w: see %s --help", err, failed.CommandPath())
	})

	command.AddCommand(newSaveCommand(ctx), newStatusCommand(), newRestoreCommand(ctx))

	return command
}

// source says which etcd to save. Its flags have the names of the server's flags.
type source struct {
	dataDir string
	target  startup.EtcdTarget
	timeout time.Duration
}

func (s *source) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.dataDir, "etcd-data-dir", "",
		"The --etcd-data-dir of an omni-apiserver that runs on this machine, or in this container.")
	flags.StringSliceVar(&s.target.Endpoints, "etcd-servers", nil,
		"Members of an etcd of your own, comma separated. The first one that answers is saved.")
	flags.StringVar(&s.target.CAFile, "etcd-cafile", "", "CA certificates that sign the certificates of --etcd-servers.")
	flags.StringVar(&s.target.CertFile, "etcd-certfile", "", "Client certificate for --etcd-servers.")
	flags.StringVar(&s.target.KeyFile, "etcd-keyfile", "", "Key of the client certificate for --etcd-servers.")
	flags.DurationVar(&s.timeout, "timeout", 10*time.Minute, "How long it may take. A full database of 2 GiB takes about a minute.")
}

func (s *source) connect(ctx context.Context) (*clientv3.Client, error) {
	target := s.target

	switch {
	case s.dataDir == "" && len(target.Endpoints) == 0:
		return nil, errors.New("save from where? Give --etcd-data-dir or --etcd-servers as the server has it")
	case s.dataDir != "" && len(target.Endpoints) > 0:
		return nil, errors.New("--etcd-data-dir and --etcd-servers exclude each other")
	case s.timeout <= 0:
		return nil, errors.New("--timeout must be above 0")
	case s.dataDir != "":
		endpoint, err := embeddedetcd.EndpointOf(s.dataDir)
		if err != nil {
			return nil, err
		}

		target = startup.EtcdTarget{Endpoints: []string{endpoint}}
	}

	return startup.ConnectEtcd(ctx, target)
}

func newSaveCommand(ctx context.Context) *cobra.Command {
	var from source

	command := &cobra.Command{
		Use:   "save FILE",
		Short: "Save all objects of a running server into a file, or with - to standard output",
		Long: `Save all objects of a running server into a file, or with - to standard output.

The server goes on working meanwhile. The file appears, or the one of this name is replaced, when the snapshot
is whole, verified and on disk. After an error, throw away what went to standard output.`,
		Example: `  # Out of a Pod, whose image has no shell and no tar
  kubectl exec -n NAMESPACE POD -- /omni-apiserver snapshot save - --etcd-data-dir=DIRECTORY >FILE`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(ctx, from.timeout)
			defer cancel()

			return save(ctx, command, from, args[0])
		},
	}
	from.addFlags(command.Flags())

	return command
}

func save(ctx context.Context, command *cobra.Command, from source, path string) error {
	client, err := from.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()

	if path == standardStream {
		size, err := snapshot.Stream(ctx, client, command.OutOrStdout())
		if err != nil {
			return err
		}

		fmt.Fprintf(command.ErrOrStderr(), "%d bytes, the checksum matches\n", size)

		return nil
	}

	if err := snapshot.CheckSpace(ctx, client, filepath.Dir(path), from.dataDir); err != nil {
		return fmt.Errorf("%w: choose another place, or - for standard output", err)
	}

	info, err := snapshot.Save(ctx, client, path)
	if err != nil {
		return err
	}

	return printTable(command.OutOrStdout(), []*snapshot.Info{info})
}
