package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
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

func newRestoreCommand(ctx context.Context) *cobra.Command {
	var (
		dataDir string
		replace bool
	)

	command := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a data directory from a snapshot, which may come from standard input with -",
		Long: `Make a data directory from a snapshot, which may come from standard input with -.

Stop omni-apiserver, and better omni-controller as well, before. Clients that watched the lost state are told to
list anew: the revision is raised above any that was handed out. What omni-controller does about objects that
are back in an older state, and what it does not, is in docs/concepts/remote-safety.md.

This is for the etcd inside omni-apiserver. Restore an etcd of your own with etcdutl, with its flags
--bump-revision and --mark-compacted.`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if dataDir == "" {
				return errors.New("restore to where? Give the --etcd-data-dir of the server")
			}

			return restore(ctx, command, dataDir, args[0], replace)
		},
	}
	command.Flags().StringVar(&dataDir, "etcd-data-dir", "", "Directory to make, or to fill if it has no data.")
	command.Flags().BoolVar(&replace, "replace", false,
		"If the directory has data, put it aside into <etcd-data-dir>/replaced-<time>. Remove that when you do not need it any more.")

	return command
}

// restore returns when the restore is done or the context has ended. In the second case the restore goes on in the
// background until the process ends; that is no worse than a kill.
func restore(ctx context.Context, command *cobra.Command, dataDir, path string, replace bool) error {
	var restored *embeddedetcd.Restored

	done := make(chan error, 1)

	go func() {
		var err error
		if path == standardStream {
			restored, err = embeddedetcd.RestoreStream(dataDir, command.InOrStdin(), replace, time.Now())
		} else {
			restored, err = embeddedetcd.Restore(dataDir, path, replace, time.Now())
		}
		done <- err
	}()

	select {
	case <-ctx.Done():
		return errors.New("restore: interrupted; the data of before is in place, or omni-apiserver refuses to start until this is repeated")
	case err := <-done:
		if err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}

	return report(command.OutOrStdout(), dataDir, restored)
}

// report prints what was restored.
func report(to io.Writer, dataDir string, restored *embeddedetcd.Restored) error {
	info := restored.Snapshot

	_, err := fmt.Fprintf(to, "Restored %d keys, %d objects among them, of revision %d into %s; it goes on at revision %d.\n",
		info.Keys, countObjects(info), info.Revision, dataDir, restored.Revision)

	if restored.Replaced != "" {
		_, err = fmt.Fprintf(to, "The data of before is in %s. Remove it when you do not need it any more.\n", restored.Replaced)
	}

	if others := otherPrefixes(info); len(others) > 0 {
		_, err = fmt.Fprintf(to, "Caution: it has objects below %s. omni-apiserver serves those below %s, unless --etcd-prefix says otherwise: "+
			"are they its own, and not those of another operator with the same kinds?\n", strings.Join(others, ", "), etcdPrefix)
	}

	if err != nil {
		return fmt.Errorf("the restore is complete; print: %w", err)
	}

	return nil
}

// otherPrefixes returns the prefixes of objects that a server with the default flags would not see.
func otherPrefixes(info *snapshot.Info) []string {
	return slices.DeleteFunc(slices.Clone(info.Prefixes), func(prefix string) bool { return prefix == etcdPrefix })
}

func newStatusCommand() *cobra.Command {
	var output string

	command := &cobra.Command{
		Use:   "status FILE...",
		Short: "Verify snapshots and show what they contain",
		Long: `Verify snapshots and show what they contain. A directory stands for the scheduled snapshots in it.

Columns: when the file was written; etcd's revision, which is the resourceVersion of the last write; the
number of keys, and of our objects among them; the size of the file in bytes; the data version of the objects
and of etcd; etcd's own hash of the content, as etcdutl prints it.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			infos, err := inspectAll(args)

			var printed error

			switch output {
			case "json":
				printed = printJSON(command.OutOrStdout(), infos)
			case "table":
				printed = printTable(command.OutOrStdout(), infos)
			default:
				return fmt.Errorf("--output: %q is neither table nor json", output)
			}

			return errors.Join(err, printed)
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "table", "table, or json for a list of objects.")

	return command
}

// inspectAll returns the snapshots that can be read, and an error about the others.
func inspectAll(paths []string) ([]*snapshot.Info, error) {
	var (
		files []string
		infos = []*snapshot.Info{}
		errs  []error
	)

	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			files = append(files, path)

			continue
		}

		found, err := snapshot.InDirectory(path)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("there are no scheduled snapshots in %s", path)
		}

		errs = append(errs, err)

		for _, scheduled := range found {
			files = append(files, scheduled.Path)
		}
	}

	for _, file := range files {
		info, err := snapshot.Inspect(file)
		if err != nil {
			errs = append(errs, err)

			continue
		}

		infos = append(infos, info)
	}

	return infos, errors.Join(errs...)
}

func printJSON(to io.Writer, infos []*snapshot.Info) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")

	if err := encoder.Encode(infos); err != nil {
		return fmt.Errorf("print: %w", err)
	}

	return nil
}

func printTable(to io.Writer, infos []*snapshot.Info) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WRITTEN\tREVISION\tKEYS\tOBJECTS\tSIZE\tDATA\tETCD\tHASH\tFILE")

	for _, info := range infos {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", info.Written.Format(time.RFC3339), info.Revision,
			info.Keys, countObjects(info), info.Size, info.DataVersion, info.EtcdVersion, info.Hash, info.Path)
	}

	if err := table.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}

	return nil
}

// countObjects is the number of our objects of all kinds.
func countObjects(info *snapshot.Info) int {
	objects := 0
	for _, count := range info.Objects {
		objects += count
	}

	return objects
}
