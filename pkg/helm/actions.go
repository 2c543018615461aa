package helm

import (
	"cmp"
	"context"
	"errors"
	"math"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

func (c *Client) install(s *attempt) error {
	// Helm begins anew over a record that it cannot read.
	if _, err := c.newest(s); err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		return err
	}

	attempted, err := c.attempted(s)
	if err != nil {
		return err
	}

	c.removeLeftovers(s, attempted, "")

	// With its namespace alone an action has not begun: that stays in any case, and what comes next may wait for long.
	if s.request.Settings.CreateNamespace {
		if err := s.soft.Err(); err != nil {
			return err
		}

		if err := c.createNamespace(s); err != nil {
			return err
		}
	}

	// Helm gives every install the number 1, whatever is recorded.
	prerendered, err := c.prepare(s, render.Release{Revision: 1}, !s.request.Settings.SkipCRDs)
	if err != nil {
		return err
	}

	install := action.NewInstall(s.config)
	install.ReleaseName, install.Namespace = c.target.Name, c.target.Namespace
	install.Labels = s.request.labels(s.storage.original)
	install.Replace = true // over attempts that failed
	install.ForceConflicts, s.guard.ServerSide = true, true
	install.Timeout, install.WaitForJobs = s.request.Settings.Timeout, s.request.Settings.WaitForJobs
	install.WaitStrategy, install.WaitOptions = waitStrategy(s.request.Settings.Wait), []kube.WaitOption{kube.WithWaitContext(s.soft)}
	install.DisableHooks = s.request.Settings.DisableHooks
	install.TakeOwnership = s.request.Settings.TakeOwnership

	if err := c.prepareChange(s); err != nil {
		return err
	}

	ctx, cancel := rendering(s)
	defer cancel()

	// Of the last write of the record, Helm passes over the error.
	if _, err = install.RunWithContext(ctx, prerendered, s.request.Values.Tree()); err == nil {
		err = s.storage.unwritten
	}

	return err
}

func (c *Client) upgrade(s *attempt) error {
	last, replaced, err := c.before(s)
	if err != nil {
		return err
	}

	if err := c.chooseRemovable(s, replaced); err != nil {
		return err
	}

	crds, err := needsCRDs(s)
	if err != nil {
		return err
	}

	// What is made again keeps its number; see resumable.
	number := cmp.Or(s.request.Decision.Resume, last.Version+1)

	prerendered, err := c.prepare(s, render.Release{Revision: number, Upgrade: true}, crds)
	if err != nil {
		return err
	}

	s.goWithout() // the CRDs are there

	upgrade := action.NewUpgrade(s.config)
	upgrade.Namespace = c.target.Namespace
	upgrade.Labels = s.request.labels(s.storage.original)
	// Helm carries labels over from the last revision; "null" takes them off.
	upgrade.Labels[labelTested], upgrade.Labels[labelInterrupted] = "null", "null"
	upgrade.ResetValues = true // or empty values would mean those of the last revision
	upgrade.MaxHistory = s.request.Settings.MaxHistory
	upgrade.Timeout, upgrade.WaitForJobs = s.request.Settings.Timeout, s.request.Settings.WaitForJobs
	upgrade.WaitStrategy, upgrade.WaitOptions = waitStrategy(s.request.Settings.Wait), []kube.WaitOption{kube.WithWaitContext(s.soft)}
	upgrade.DisableHooks = s.request.Settings.DisableHooks
	upgrade.TakeOwnership = s.request.Settings.TakeOwnership
	// Releases of Helm 3 were not applied by the server, and go on as they began.
	s.guard.ServerSide = last.ApplyMethod == string(releasev1.ApplyMethodServerSideApply)
	upgrade.ForceConflicts = s.guard.ServerSide

	if err := c.prepareChange(s); err != nil {
		return err
	}

	ctx, cancel := rendering(s)
	defer cancel()

	_, err = upgrade.RunWithContext(ctx, c.target.Name, prerendered, s.request.Values.Tree())

	return err
}

// prepareChange asks whether the action may change something, and makes the first change that only some need; see markHooked.
func (c *Client) prepareChange(s *attempt) error {
	if err := s.mayChange(); err != nil {
		return err
	}

	return c.markHooked(s)
}

// needsCRDs reports whether CRDs are installed before an upgrade: over attempts of
// which none was ever in effect, it stands for the install.
func needsCRDs(s *attempt) (bool, error) {
	observed, err := s.storage.list()

	return err == nil && !s.request.Settings.SkipCRDs && observed.lastGood(math.MaxInt) == nil, err
}

// before is the newest revision, and the one that is replaced. The values of both are kept out of messages: a server that
// refuses a change quotes the object as it was.
func (c *Client) before(s *attempt) (last, replaced *releasev1.Release, err error) {
	if last, err = c.newest(s); err != nil {
		return nil, nil, err
	}

	if replaced, err = c.replaced(s, last); err != nil {
		return nil, nil, err
	}

	s.values.add(replaced.Config)

	return last, replaced, nil
}

// replaced is the revision whose objects an upgrade replaces: the deployed one, or the newest if there is none.
func (c *Client) replaced(s *attempt, last *releasev1.Release) (*releasev1.Release, error) {
	deployed, err := s.config.Releases.Deployed(c.target.Name)
	if errors.Is(err, driver.ErrNoDeployedReleases) {
		return last, nil
	}

	if err != nil {
		return nil, err
	}

	return asRelease(deployed)
}

func (c *Client) rollBack(s *attempt) error {
	target, err := s.config.Releases.Get(c.target.Name, s.request.Decision.Revision)
	if err != nil {
		return err
	}

	record, err := asRelease(target)
	if err != nil {
		return err
	}

	s.values.add(record.Config)
	s.storage.rollback, s.guard.Needed = true, record.Manifest
	s.goWithout()

	last, _, err := c.before(s)
	if err != nil {
		return err
	}

	if err := c.chooseRemovable(s, last); err != nil {
		return err
	}

	if err := c.excludeOthers(s, record, last); err != nil {
		return err
	}

	rollback := action.NewRollback(s.config)
	rollback.Version = s.request.Decision.Revision
	rollback.MaxHistory = s.request.Settings.MaxHistory
	s.guard.ServerSide = record.ApplyMethod == string(releasev1.ApplyMethodServerSideApply)
	rollback.ForceConflicts = s.guard.ServerSide
	rollback.Timeout, rollback.WaitForJobs = s.request.Settings.Timeout, s.request.Settings.WaitForJobs
	rollback.WaitStrategy, rollback.WaitOptions = waitStrategy(s.request.Settings.Wait), []kube.WaitOption{kube.WithWaitContext(s.soft)}
	rollback.DisableHooks = s.request.Settings.DisableHooks

	if err := c.prepareChange(s); err != nil {
		return err
	}

	return rollback.Run(c.target.Name)
}

// newest is the record of the newest revision. What that was made from is kept
// out of messages: hooks were rendered with it.
func (c *Client) newest(s *attempt) (*releasev1.Release, error) {
	found, err := s.config.Releases.Last(c.target.Name)
	if err != nil {
		return nil, err
	}

	record, err := asRelease(found)
	if err != nil {
		return nil, err
	}

	s.values.add(record.Config)

	return record, nil
}

// test runs the chart's tests and notes the result on the revision. A test that
// fails is an error.
func (c *Client) test(s *attempt) error {
	if _, err := c.newest(s); err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		return err
	}

	tests := action.NewReleaseTesting(s.config)
	tests.Namespace = c.target.Namespace
	tests.Timeout = s.request.Settings.Timeout
	tests.WaitOptions = []kube.WaitOption{kube.WithWaitContext(s.soft)}

	if err := s.mayChange(); err != nil {
		return err
	}

	s.storage.progress = key(c.target.Name, s.request.Decision.Revision)

	_, shutdown, err := tests.Run(c.target.Name)
	if shutdown != nil {
		if cleanUp := shutdown(); cleanUp != nil && err == nil {
			err = cleanUp
		}
	}

	result := TestsPassed

	if err != nil {
		// A stop says nothing about the tests, nor does a cluster that cannot be reached.
		if errors.Is(s.soft.Err(), context.Canceled) || reasonOf(err) == ReasonUnreachable {
			return err
		}

		result = TestsFailed
	}

	noted := c.change(s, s.request.Decision.Revision, func(record *releasev1.Release) { record.Labels[labelTested] = string(result) })

	return errors.Join(err, noted)
}
