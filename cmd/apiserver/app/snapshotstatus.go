package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

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
