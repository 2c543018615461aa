package migrate

import (
	"context"
	"errors"
	"fmt"
)

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
