package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// restBefore is how long a side may settle between its start and what is measured, and after it:
// what a controller does then belongs to it.
const restBefore, restAfter = 5 * time.Second, 2 * time.Second

// compareReleases installs the same releases with both sides, in turn, and then watches both while
// nothing has to be done.
func (b *bench) compareReleases(ctx context.Context) (err error) {
	r, err := b.startReleaseBench(ctx)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, r.close()) }()

	installers := map[string]string{}
	for _, c := range r.sides {
		installers[c.name] = c.processes[0]
	}

	count := b.settings.Releases
	install := comparison{what: fmt.Sprintf("%d first installs", count), installers: installers, efforts: map[string][]effort{}}

	for round := range b.settings.ReleaseRounds {
		if err := r.installRound(ctx, round, install.efforts); err != nil {
			return err
		}
	}

	b.results.add(install.installFigures()...)
	b.results.lines = append(b.results.lines, install.lines("install", count, count)...)

	idle := comparison{what: fmt.Sprintf("%d idle releases, %s", count, b.settings.ReleaseWindow), installers: installers, efforts: map[string][]effort{}}
	if err := r.watchIdle(ctx, idle.efforts); err != nil {
		return err
	}

	b.results.add(idle.idleFigures()...)
	b.results.lines = append(b.results.lines, idle.lines("idle", 1, count)...)

	return nil
}

// installRound lets both sides install everything, one after the other. What an earlier round
// installed is removed before.
func (r *releaseBench) installRound(ctx context.Context, round int, efforts map[string][]effort) error {
	order := slices.Clone(r.sides)
	if round%2 == 1 {
		slices.Reverse(order)
	}

	if round > 0 {
		for _, c := range order {
			if err := r.uninstall(ctx, c); err != nil {
				return err
			}
		}
	}

	for _, c := range order {
		r.say("  round %d: %s", round+1, c.name)

		// What an earlier round left in its memory is no part of this one.
		if err := c.restart(ctx); err != nil {
			return err
		}

		if err := sleep(ctx, restBefore); err != nil {
			return err
		}

		took, err := r.install(ctx, c)
		if err != nil {
			return err
		}

		efforts[c.name] = append(efforts[c.name], took)
	}

	return nil
}

// install creates all releases of a side and waits until they are Ready.
func (r *releaseBench) install(ctx context.Context, c *releaseSide) (effort, error) {
	before, err := r.begin(ctx, c)
	if err != nil {
		return effort{}, err
	}

	var took effort

	err = r.watchBusy(fmt.Sprintf("%d first installs, %s", r.settings.Releases, c.name), func() error {
		if err := inParallel(ctx, creators, r.settings.Releases, func(ctx context.Context, _, i int) error {
			return r.create(ctx, objectsPath(c.resource, c.namespace), c.manifest(wantedRelease{
				number: i, workload: i % r.settings.Workloads, repository: c.charts.URL(), namespace: c.target, interval: r.settings.ReleaseInterval,
			}))
		}); err != nil {
			return err
		}

		ready, err := c.watched.waitFor(ctx, r.settings.Releases, c.name)
		if err != nil {
			return err
		}

		if err := sleep(ctx, restAfter); err != nil {
			return err
		}

		took, err = r.since(ctx, c, before)
		took.seconds = ready.Sub(before.at).Seconds()

		return err
	})
	if err != nil {
		return effort{}, err
	}

	// A release of which there is no record, or more than one, would make the figures worthless.
	if took.revisions != r.settings.Releases {
		return effort{}, fmt.Errorf("%s: Helm has %d new revisions of %d releases", c.name, took.revisions, r.settings.Releases)
	}

	return took, nil
}

// uninstall deletes all releases of a side and waits until they are gone.
func (r *releaseBench) uninstall(ctx context.Context, c *releaseSide) error {
	err := inParallel(ctx, creators, r.settings.Releases, func(ctx context.Context, _, i int) error {
		return r.admin.Delete().AbsPath(objectsPath(c.resource, c.namespace), releaseName(i)).Do(ctx).Error()
	})
	if err != nil {
		return fmt.Errorf("delete the releases of %s: %w", c.name, err)
	}

	_, err = c.watched.waitFor(ctx, 0, c.name)

	return err
}

// watchIdle watches both sides at the same time: the sides share nothing that is counted but the
// clusters' own processor time, which is left out.
func (r *releaseBench) watchIdle(ctx context.Context, efforts map[string][]effort) error {
	if err := sleep(ctx, restBefore); err != nil {
		return err
	}

	starts := make([]mark, len(r.sides))

	for i, c := range r.sides {
		var err error
		if starts[i], err = r.begin(ctx, c); err != nil {
			return err
		}
	}

	if err := sleep(ctx, r.settings.ReleaseWindow); err != nil {
		return err
	}

	for i, c := range r.sides {
		took, err := r.since(ctx, c, starts[i])
		if err != nil {
			return err
		}

		efforts[c.name] = append(efforts[c.name], took)
	}

	return nil
}

// sleep waits, or ends with the run.
func sleep(ctx context.Context, duration time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(duration):
		return nil
	}
}
