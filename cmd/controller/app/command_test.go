package app

import (
	"testing"

	"github.com/spf13/cobra"
)

// The root command starts the log for its own work; an error of the export is for people.
func TestExportDoesNotStartTheLog(t *testing.T) {
	command := NewCommand(t.Context())

	started := false
	command.PersistentPreRun = func(*cobra.Command, []string) { started = true }

	command.SetArgs([]string{"export"})

	if err := command.Execute(); err == nil || started {
		t.Errorf("error %v, log started: %t", err, started)
	}
}
