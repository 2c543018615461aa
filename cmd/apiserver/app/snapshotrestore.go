package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

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
