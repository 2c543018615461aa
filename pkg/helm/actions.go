package helm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"helm.sh/helm/v4/pkg/storage/driver"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

func (c *Client) install(x *execution) error {
	// Helm begins anew over a record that it cannot read.
	if _, err := c.newest(x); err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		return err
	}

	attempted, err := c.objectsOfFailed(x)
	if err != nil {
		return err
	}

	c.removeLeftovers(x, attempted, "")

	// With its namespace alone an action has not begun: that stays in any case, and what comes next may wait for long.
	if x.request.Settings.CreateNamespace {
		if err := x.soft.Err(); err != nil {
			return err
		}

		if err := c.createNamespace(x); err != nil {
			return err
		}
	}

	// Helm gives every install the number 1, whatever is recorded.
	prerendered, err := c.prepare(x, render.Release{Revision: 1}, !x.request.Settings.SkipCRDs)
	if err != nil {
		return err
	}

	install := action.NewInstall(x.config)
	install.ReleaseName, install.Namespace = c.target.Name, c.target.Namespace
	install.Labels = x.labels()
	install.Replace = true // over attempts that failed
	install.ForceConflicts, x.guard.ServerSide = true, true
	install.Timeout, install.WaitForJobs = x.request.Settings.Timeout, x.request.Settings.WaitForJobs
	install.WaitStrategy, install.WaitOptions = waitStrategy(x.request.Settings.Wait), []kube.WaitOption{kube.WithWaitContext(x.soft)}
	install.DisableHooks = x.request.Settings.DisableHooks
	install.TakeOwnership = x.request.Settings.TakeOwnership

	if err := x.mayChange(); err != nil {
		return err
	}

	ctx, cancel := rendering(x)
	defer cancel()

	// Of the last write of the record, Helm passes over the error.
	if _, err = install.RunWithContext(ctx, prerendered, x.request.Values.Tree()); err == nil {
		err = x.storage.unwritten
	}

	return err
}

func (c *Client) upgrade(x *execution) error {
	last, replaced, err := c.newestAndReplaced(x)
	if err != nil {
		return err
	}

	if err := c.chooseRemovable(x, replaced); err != nil {
		return err
	}

	crds, err := needsCRDs(x)
	if err != nil {
		return err
	}

	// What is made again keeps its number; see resumable.
	number := cmp.Or(x.request.Decision.Resume, last.Version+1)

	prerendered, err := c.prepare(x, render.Release{Revision: number, Upgrade: true}, crds)
	if err != nil {
		return err
	}

	x.goWithout() // the CRDs are there

	upgrade := action.NewUpgrade(x.config)
	upgrade.Namespace = c.target.Namespace
	upgrade.Labels = x.labels()

	// Helm carries labels over from the last revision; "null" takes them off.
	for _, name := range []string{labelTested, labelInterrupted, labelUnchecked} {
		upgrade.Labels[name] = cmp.Or(upgrade.Labels[name], "null")
	}

	upgrade.ResetValues = true // or empty values would mean those of the last revision
	upgrade.MaxHistory = x.request.Settings.MaxHistory
	upgrade.Timeout, upgrade.WaitForJobs = x.request.Settings.Timeout, x.request.Settings.WaitForJobs
	upgrade.WaitStrategy, upgrade.WaitOptions = waitStrategy(x.request.Settings.Wait), []kube.WaitOption{kube.WithWaitContext(x.soft)}
	upgrade.DisableHooks = x.request.Settings.DisableHooks
	upgrade.TakeOwnership = x.request.Settings.TakeOwnership
	// Releases of Helm 3 were not applied by the server, and go on as they began.
	x.guard.ServerSide = last.ApplyMethod == string(releasev1.ApplyMethodServerSideApply)
	upgrade.ForceConflicts = x.guard.ServerSide

	if err := x.mayChange(); err != nil {
		return err
	}

	ctx, cancel := rendering(x)
	defer cancel()

	_, err = upgrade.RunWithContext(ctx, c.target.Name, prerendered, x.request.Values.Tree())

	return err
}

// needsCRDs reports whether CRDs are installed before an upgrade: over attempts of
// which none was ever in effect, it stands for the install.
func needsCRDs(x *execution) (bool, error) {
	observed, err := x.storage.list()

	return err == nil && !x.request.Settings.SkipCRDs && observed.lastGood(math.MaxInt) == nil, err
}

// newestAndReplaced is the newest revision, and the one that is replaced. The values of both are kept out of messages: a server that
// refuses a change quotes the object as it was.
func (c *Client) newestAndReplaced(x *execution) (last, replaced *releasev1.Release, err error) {
	if last, err = c.newest(x); err != nil {
		return nil, nil, err
	}

	if replaced, err = c.replaced(x, last); err != nil {
		return nil, nil, err
	}

	x.values.add(replaced.Config)

	return last, replaced, nil
}

// replaced is the revision whose objects an upgrade replaces: the deployed one, or the newest if there is none.
func (c *Client) replaced(x *execution, last *releasev1.Release) (*releasev1.Release, error) {
	deployed, err := x.config.Releases.Deployed(c.target.Name)
	if errors.Is(err, driver.ErrNoDeployedReleases) {
		return last, nil
	}

	if err != nil {
		return nil, err
	}

	return asRelease(deployed)
}

func (c *Client) rollBack(x *execution) error {
	target, err := x.config.Releases.Get(c.target.Name, x.request.Decision.Revision)
	if err != nil {
		return err
	}

	record, err := asRelease(target)
	if err != nil {
		return err
	}

	x.values.add(record.Config)
	x.storage.rollback, x.guard.Needed = true, record.Manifest
	x.goWithout()

	last, _, err := c.newestAndReplaced(x)
	if err != nil {
		return err
	}

	if err := c.chooseRemovable(x, last); err != nil {
		return err
	}

	rollback := action.NewRollback(x.config)
	rollback.Version = x.request.Decision.Revision
	rollback.MaxHistory = x.request.Settings.MaxHistory
	x.guard.ServerSide = record.ApplyMethod == string(releasev1.ApplyMethodServerSideApply)
	rollback.ForceConflicts = x.guard.ServerSide
	rollback.Timeout, rollback.WaitForJobs = x.request.Settings.Timeout, x.request.Settings.WaitForJobs
	rollback.WaitStrategy, rollback.WaitOptions = waitStrategy(x.request.Settings.Wait), []kube.WaitOption{kube.WithWaitContext(x.soft)}
	rollback.DisableHooks = x.request.Settings.DisableHooks

	if err := x.mayChange(); err != nil {
		return err
	}

	return rollback.Run(c.target.Name)
}

// newest is the record of the newest revision. What that was made from is kept
// out of messages: hooks were rendered with it.
func (c *Client) newest(x *execution) (*releasev1.Release, error) {
	found, err := x.config.Releases.Last(c.target.Name)
	if err != nil {
		return nil, err
	}

	record, err := asRelease(found)
	if err != nil {
		return nil, err
	}

	x.values.add(record.Config)

	return record, nil
}

// test runs the chart's tests and notes the result on the revision. A test that
// fails is an error.
func (c *Client) test(x *execution) error {
	if _, err := c.newest(x); err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		return err
	}

	tests := action.NewReleaseTesting(x.config)
	tests.Namespace = c.target.Namespace
	tests.Timeout = x.request.Settings.Timeout
	tests.WaitOptions = []kube.WaitOption{kube.WithWaitContext(x.soft)}

	if err := x.mayChange(); err != nil {
		return err
	}

	x.storage.result = key(c.target.Name, x.request.Decision.Revision)

	_, shutdown, err := tests.Run(c.target.Name)
	if shutdown != nil {
		if cleanUp := shutdown(); cleanUp != nil && err == nil {
			err = cleanUp
		}
	}

	result := TestsPassed

	if err != nil {
		// A stop says nothing about the tests, nor does a cluster that cannot be reached or does not answer.
		if errors.Is(x.soft.Err(), context.Canceled) || reasonOf(err) == ReasonUnreachable || notNow(err) {
			return err
		}

		result = TestsFailed
	}

	noted := c.change(x, x.request.Decision.Revision, func(record *releasev1.Release) { record.Labels[labelTested] = string(result) })

	return errors.Join(err, noted)
}

// checkTexts measures and bounds the manifests inside of a record, which are one value each there: Helm parses them for every
// comparison, upgrade and uninstallation.
func checkTexts(ctx context.Context, record []byte) (foreign.Size, error) {
	// Read as Helm reads it, so that nobody can show us other manifests than Helm.
	var kept struct {
		Manifest string `json:"manifest"`
		Hooks    []*struct {
			Manifest string `json:"manifest"`
		} `json:"hooks"`
	}

	if err := json.Unmarshal(record, &kept); err != nil {
		return foreign.Size{}, errors.New("is damaged")
	}

	texts := map[string]string{}

	add := func(name, text string) {
		// Helm separates documents in its own way, and more often than YAML does.
		for at, document := range releaseutil.SplitManifests(text) {
			texts[name+" "+at] = document
		}
	}

	add("manifest", kept.Manifest)

	for i, hook := range kept.Hooks {
		if hook != nil {
			add(fmt.Sprintf("hook %d", i), hook.Manifest)
		}
	}

	return checkDocuments(ctx, texts)
}

// checkDocuments checks texts together, and each for itself if one is no YAML. Such a one is for Helm to refuse, as long as
// it cannot have an alias: what one parser refuses, another may read.
func checkDocuments(ctx context.Context, texts map[string]string) (foreign.Size, error) {
	all := strings.Join(slices.Collect(maps.Values(texts)), drift.ManifestSeparator)

	total, err := foreign.Measure(ctx, []byte(all), drift.ManifestLimits())
	if !errors.Is(err, foreign.ErrSyntax) {
		return total, inManifests(err)
	}

	total = foreign.Size{}

	for _, text := range texts {
		size, err := foreign.Measure(ctx, []byte(text), drift.ManifestLimits())
		if errors.Is(err, foreign.ErrSyntax) && !(strings.Contains(text, "&") && strings.Contains(text, "*")) {
			continue
		}

		if err != nil {
			return foreign.Size{}, inManifests(err)
		}

		total = total.And(size)
	}

	return total, nil
}

func inManifests(err error) error {
	if err == nil {
		return nil
	}

	return fmt.Errorf("has manifests of which at least one %w", err)
}

// unlock marks a revision as failed whose action has no result, an uninstall among them: Helm upgrades over a failure only. Of an
// uninstall that stays noted. If the action has a result by now, that counts.
func (c *Client) unlock(x *execution, revision int) error {
	return c.change(x, revision, func(record *releasev1.Release) {
		if status := Status(record.Info.Status); !status.pending() && status != StatusUnknown && status != StatusUninstalling {
			return
		}

		if Status(record.Info.Status) == StatusUninstalling {
			record.Labels[labelLeftUninstalling] = strconv.Itoa(revision)
		}

		record.SetStatus(common.StatusFailed, fmt.Sprintf("was left %s by an action that never ended", record.Info.Status))
	})
}

// change reads, changes and writes the record of a revision.
func (c *Client) change(x *execution, revision int, change func(*releasev1.Release)) error {
	var (
		found release.Releaser
		err   error
	)

	if found, err = x.config.Releases.Get(c.target.Name, revision); err != nil {
		return fmt.Errorf("read revision %d: %w", revision, err)
	}

	record, err := asRelease(found)
	if err != nil {
		return err
	}

	if record.Labels == nil {
		record.Labels = map[string]string{}
	}

	change(record)

	if err := x.config.Releases.Update(record); err != nil {
		return fmt.Errorf("write revision %d: %w", revision, err)
	}

	return nil
}
