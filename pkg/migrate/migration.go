// Package migrate moves a hub to this operator from the operator that serves omni.texashpc.com with custom resource
// definitions, without any deletion reaching Omni.
//
//   - Convert is pure: it turns one stored object of the old operator into one of ours, or lists what the user has to
//     change first.
//   - Migration.Plan reads the hub and reports what Run would do. It writes nothing.
//   - Migration.Run does the migration in steps. Each step asks the hub whether it is done, so the next run finishes one
//     that was killed. Everything that a step changes or removes is in the backup file first.
//   - Migration.Undo reverses it, until the definitions are deleted.
//
// The package is no controller and no part of one: its callers are command-line tools.
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

// step is one step of a run. It asks the hub what is done and does the rest, so the next run finishes one that was
// killed at any point.
type step struct {
	title string
	// needs reports whether the step has anything to do.
	needs func(s *state, b *backup) bool
	do    func(*Migration, context.Context) error
}

// steps are in their order.
func steps() []step {
	return []step{
		{"check that nothing is refused and nothing is being deleted", canBeUndone, (*Migration).check},
		{"save everything that is changed or removed into the backup file", hasDefinitions, (*Migration).save},
		{"stop the old operator, and wait until it has no Pod", hasDefinitions, (*Migration).stop},
		{"delete its webhook configurations, which would refuse the next changes", hasDefinitions, (*Migration).deleteWebhooks},
		{"set the old objects to let go, should the old operator ever run again (deletePolicy.orphan, deletionPolicy: Orphan)", hasDefinitions, (*Migration).makeHarmless},
		{"take its finalizers and owner references off", hasDefinitions, (*Migration).release},
		{"check that nothing runs and nobody writes", canBeUndone, (*Migration).checkQuiet},
		{"delete the custom resource definitions: from here on there is no undo", hasDefinitions, (*Migration).deleteDefinitions},
		{"wait for the API of this operator, which you install", always, (*Migration).waitForAPI},
		{"import the objects, clusters with changePolicy: Observe", always, (*Migration).importAll},
		{"verify each plan, and take over the clusters whose plan is empty", always, (*Migration).verify},
	}
}

func always(*state, *backup) bool { return true }

// hasDefinitions reports whether there are definitions.
func hasDefinitions(s *state, _ *backup) bool { return len(s.Definitions) > 0 }

// canBeUndone reports whether there are definitions and none of them is being deleted.
func canBeUndone(s *state, b *backup) bool {
	return len(s.Definitions) > 0 && (b == nil || !b.irreversible(s))
}

// stepTitles returns the titles of Run's steps, for people.
func stepTitles() []string {
	var titles []string
	for _, step := range steps() {
		titles = append(titles, step.title)
	}

	return titles
}

// Run does the part of the migration that is not done yet. The report says what became of the objects; once the
// import has begun, it is returned with an error, too.
func (m *Migration) Run(ctx context.Context) (*Report, error) {
	all := steps()

	for i, step := range all {
		s, err := m.readState(ctx)
		if err != nil {
			return m.report, err
		}

		if older := olderProblem(s); older != "" {
			return m.report, errors.New(older)
		}

		if m.backup == nil {
			if err := m.load(ctx, s); err != nil {
				return m.report, err
			}
		}

		if len(s.Definitions) > 0 && s.registered() {
			return m.report, errors.New(problemsOf(s)[0])
		}

		if !step.needs(s, m.backup) {
			m.say("[%d/%d] %s: done before", i+1, len(all), step.title)

			continue
		}

		m.say("[%d/%d] %s", i+1, len(all), step.title)

		if err := step.do(m, ctx); err != nil {
			return m.report, fmt.Errorf("step %d (%s): %w", i+1, step.title, err)
		}
	}

	return m.report, nil
}

// load reads the backup of an earlier run, if there is one.
func (m *Migration) load(ctx context.Context, s *state) error {
	read, err := readBackup(ctx, m.options.Backup)
	if err != nil {
		return err
	}

	switch {
	case read != nil:
		m.backup = read

		return read.belongsTo(s.HubID)
	case len(s.Definitions) == 0:
		return fmt.Errorf("there are no custom resource definitions and no backup %s: nothing has to be moved, or the file of the first run is missing", m.options.Backup)
	}

	for i := range s.Definitions {
		if s.Definitions[i].GetDeletionTimestamp() != nil {
			return fmt.Errorf("%s is being deleted, and there is no backup %s: give the file of the first run", idOf(&s.Definitions[i]), m.options.Backup)
		}
	}

	return nil
}
