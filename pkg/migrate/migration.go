package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// Options configure a migration.
type Options struct {
	// Hub is the configuration of the management cluster's client.
	Hub *rest.Config
	// Backup is the file that everything is saved in.
	Backup string
	// Deployments name Deployments of the old operator, as namespace/name, that do not have its labels.
	Deployments []string
	// WithoutDeployment says that the old operator has no Deployment any more.
	WithoutDeployment bool
	// QuietTime is how long there must be no writes before the definitions are deleted. Default: 15 seconds.
	QuietTime time.Duration
	// Timeout bounds each wait. Default: five minutes.
	Timeout time.Duration
	// Progress gets a line for each step, and for each wait.
	Progress io.Writer
}

const (
	defaultQuietTime = 15 * time.Second
	defaultTimeout   = 5 * time.Minute
	// pollPause is the pause between two checks of a wait.
	pollPause = time.Second
)

// Migration moves one hub.
type Migration struct {
	hub     *hub
	options Options
	now     func() time.Time
	backup  *backup
	report  *Report
	// notMade is why objects were not imported; the rest of the run goes on without them.
	notMade error
}

// New checks the options.
func New(options Options) (*Migration, error) {
	if options.Backup == "" {
		return nil, errors.New("a backup file is required: a name on a disk that outlives the migration")
	}

	for _, name := range options.Deployments {
		if _, _, err := splitName(name); err != nil {
			return nil, err
		}
	}

	options.QuietTime = cmp.Or(options.QuietTime, defaultQuietTime)
	options.Timeout = cmp.Or(options.Timeout, defaultTimeout)

	if options.Progress == nil {
		options.Progress = io.Discard
	}

	h, err := newHub(options.Hub)
	if err != nil {
		return nil, err
	}

	return &Migration{hub: h, options: options, now: time.Now, report: &Report{}}, nil
}

// Plan reads the hub, and reports what Run would do. It writes nothing.
func (m *Migration) Plan(ctx context.Context) (*Plan, error) {
	s, err := m.readState(ctx)
	if err != nil {
		return nil, err
	}

	return planOf(s, nil), nil
}

// say prints a line of progress.
func (m *Migration) say(format string, args ...any) {
	fmt.Fprintf(m.options.Progress, format+"\n", args...)
}

// wait repeats a check until it is done. At the timeout, the error has the last message of the check.
func (m *Migration) wait(ctx context.Context, what string, done func(context.Context) (missing string, err error)) error {
	var (
		last   string
		failed error // of the check, and not of the time
	)

	err := wait.PollUntilContextTimeout(ctx, pollPause, m.options.Timeout, true, func(ctx context.Context) (bool, error) {
		missing, err := done(ctx)

		switch {
		case err != nil && ctx.Err() != nil && last != "":
			return false, nil // the time is over
		case err != nil:
			failed = err
		case missing != "" && missing != last:
			last = missing
			m.say("      waiting for %s: %s", what, last)
		}

		return missing == "", failed
	})
	if err == nil || failed != nil {
		return failed
	}

	return fmt.Errorf("%s: gave up after %s: %s", what, m.options.Timeout, last)
}
