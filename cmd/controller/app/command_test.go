package app

import (
	"testing"

	"github.com/spf13/cobra"
)

// The root command starts logging for the controller; export prints errors for people instead.
func TestExportDoesNotStartTheLog(t *testing.T) {
	command := NewCommand(t.Context())

	started := false
	command.PersistentPreRun = func(*cobra.Command, []string) { started = true }

	command.SetArgs([]string{"export"})

	if err := command.Execute(); err == nil || started {
		t.Errorf("error %v, log started: %t", err, started)
	}
}
