package helm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"helm.sh/helm/v4/pkg/storage/driver"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
)

func (c *Client) uninstall(x *execution) error {
	record, err := c.newest(x)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil
	}

	if err != nil {
		return err
	}

	x.storage.passOverHooks(record)

	if err := c.coverAll(x, record); err != nil {
		return err
	}

	x.goWithout()

	// Objects that are left need a record that knows them.
	x.storage.keep = onceFine(func() error {
		err := cmp.Or(x.guard.Undeleted(), x.soft.Err())
		if err == nil {
			err = c.allGone(x, record.Manifest)
		}

		if err != nil {
			return fmt.Errorf("the records of the release are kept, because objects of it may be left: %w", err)
		}

		return nil
	})

	uninstall := action.NewUninstall(x.config)
	uninstall.DisableHooks = x.request.Settings.DisableHooks
	uninstall.Timeout = x.request.Settings.Timeout
	uninstall.WaitStrategy, uninstall.WaitOptions = kube.StatusWatcherStrategy, []kube.WaitOption{kube.WithWaitContext(x.soft)}

	if err := x.mayChange(); err != nil {
		return err
	}

	response, err := uninstall.Run(c.target.Name)

	switch {
	case err == nil:
		if response != nil && response.Info != "" {
			// On one line: it names the objects in a list.
			x.request.note(NoteObjectsKept, x.values.redact(strings.Join(strings.Fields(response.Info), " ")))
		}

		return nil
	case errors.Is(err, driver.ErrReleaseNotFound):
		return nil
	case x.last.get() != "" && strings.HasPrefix(err.Error(), "failed to delete release"):
		// Helm's error names the release only.
		return fmt.Errorf("%w: %s", err, x.last.get())
	default:
		return err
	}
}

// onceFine does not ask again once the answer was nil.
func onceFine(ask func() error) func() error {
	fine := false

	return func() error {
		if fine {
			return nil
		}

		err := ask()
		fine = err == nil

		return err
	}
}

// allGone is an error if an object of a manifest is still there, or cannot be
// looked for. Helm deletes only what it can read, says nothing of the rest, and
// takes an object in an unknown state for one that is gone.
func (c *Client) allGone(x *execution, manifest string) error {
	due, err := toDelete(manifest)
	if err != nil {
		return err
	}

	objects, err := build(x, due)
	if err != nil {
		return err
	}

	for _, info := range objects {
		live, there, err := x.guard.Live(info)
		if err != nil {
			return fmt.Errorf("whether %s is gone cannot be told: %w", drift.Identify(info), err)
		}

		if !there {
			continue
		}

		if ours, _ := c.release().Whose(live); ours {
			return fmt.Errorf("%s is still there", drift.Identify(info))
		}
	}

	return nil
}

// toDelete is what Helm means to delete of a manifest: the documents without a
// policy.
func toDelete(manifest string) (string, error) {
	_, files, err := releaseutil.SortManifests(releaseutil.SplitManifests(manifest), nil, releaseutil.UninstallOrder)
	if err != nil {
		return "", fmt.Errorf("read the manifest of the release: %w", err)
	}

	var due strings.Builder

	for _, file := range files {
		if head := file.Head.Metadata; head != nil {
			if _, has := head.Annotations[kube.ResourcePolicyAnno]; has {
				continue
			}
		}

		due.WriteString("\n---\n" + file.Content)
	}

	return due.String(), nil
}

// Helm runs the pre-delete hooks of an uninstall again when that is tried again. What a hook needs, its ServiceAccount for example, may
// be an object of the release that is gone by then: the hook would never end, nor would the uninstall.

// hooksDone reports whether a record is that of an uninstall without a result whose pre-delete hooks have all succeeded in it. Helm
// writes their success before it deletes the first object.
func hooksDone(record *releasev1.Release) bool {
	if record.Info.Status != common.StatusUninstalling || record.Info.Deleted.IsZero() {
		return false
	}

	return !slices.ContainsFunc(record.Hooks, func(hook *releasev1.Hook) bool {
		return isPreDelete(hook) && (hook.LastRun.Phase != releasev1.HookPhaseSucceeded || hook.LastRun.StartedAt.Before(record.Info.Deleted))
	})
}

func isPreDelete(hook *releasev1.Hook) bool {
	return hook != nil && slices.Contains(hook.Events, releasev1.HookPreDelete)
}

// passedHooks keeps the record of an uninstall from the moment when all its pre-delete hooks have succeeded.
func (r *resumable) passedHooks(record *releasev1.Release) {
	if r.goesOn == nil && hooksDone(record) {
		r.goesOn = copyRecord(record)
	}
}

// passOverHooks keeps the pre-delete hooks of an uninstall that goes on from Helm. What is written of them stays; see restore.
func (r *resumable) passOverHooks(record *releasev1.Release) {
	if r.passedHooks(record); r.goesOn == nil {
		return
	}

	for _, hook := range record.Hooks {
		if isPreDelete(hook) {
			hook.Events = slices.DeleteFunc(slices.Clone(hook.Events), func(event releasev1.HookEvent) bool { return event == releasev1.HookPreDelete })
		}
	}
}

// coverAll adds to the newest revision what older ones may have left: Helm
// uninstalls what the newest names, and attempts that failed removed nothing, or
// not all, of what was there before them. Helm itself leaves objects that do not
// bear the marks of the release. Of the older ones nothing else is kept.
func (c *Client) coverAll(x *execution, newest *releasev1.Release) error {
	numbers, err := x.storage.visible()
	if err != nil {
		return err
	}

	for _, number := range withObjectsLeft(numbers, x.storage.statuses) {
		found, err := x.config.Releases.Get(c.target.Name, number)
		if errors.Is(err, driver.ErrReleaseNotFound) {
			continue
		}

		if err != nil {
			return fmt.Errorf("read revision %d: %w", number, err)
		}

		older, err := asRelease(found)
		if err != nil {
			return err
		}

		added := x.values.add(older.Config)

		if newest.Manifest, err = c.joined(newest.Manifest, older.Manifest); err != nil {
			return fmt.Errorf("read the manifest of revision %d: %w", number, err)
		}

		if err := x.admitJoined(newest.Manifest); err != nil {
			return err
		}

		if err := x.keepOlder(added, foreign.Size{}); err != nil {
			return err
		}

		if x.storage.statuses[number] != StatusDeployed { // which Helm reads
			x.forgetRecord(key(c.target.Name, number))
		}
	}

	x.storage.read[key(c.target.Name, newest.Version)] = copyRecord(newest)

	return nil
}

// admitJoined takes memory for a manifest that was joined from several, each of which is within its bounds.
func (x *execution) admitJoined(joined string) error {
	size, _, err := drift.CheckManifests(x.soft, map[string]string{"": joined})

	var limit *foreign.LimitError
	if errors.As(err, &limit) {
		return &RecordRefusedError{Message: fmt.Sprintf("what the failed revisions of the release may have left in the workload cluster, together, "+
			"is not read, and nothing was deleted: it %s. Delete by hand what is not needed, and Helm's records of revisions of which nothing is left", limit)}
	}

	if err != nil {
		return fmt.Errorf("read what the revisions of the release may have left: %w", err)
	}

	return x.memory.admit(joinedManifest, RecordSize{Manifests: size})
}

// keepOlder takes memory for what is kept of older revisions until the action ends: values that no message may show, and names
// of objects. The number of revisions has no bound, so all together have the bounds of one.
func (x *execution) keepOlder(texts, names foreign.Size) error {
	x.older = RecordSize{Record: x.older.Record.And(texts), Manifests: x.older.Manifests.And(names)}

	limit := cmp.Or(exceeded(x.older.Record, RecordLimits()), exceeded(x.older.Manifests, drift.ManifestLimits()))
	if limit != nil {
		return &RecordRefusedError{Message: fmt.Sprintf("Helm's records of revisions of the release that failed are not read, and nothing was changed: "+
			"what they hold of values, or name of objects, together, %s. Delete those of which nothing is left in the workload cluster", limit)}
	}

	return x.memory.admit(olderRevisions, x.older)
}

// exceeded is the limit that a size exceeds; nil if there is none.
func exceeded(size foreign.Size, limits foreign.Limits) *foreign.LimitError {
	switch {
	case size.Nodes > limits.Nodes:
		return &foreign.LimitError{What: foreign.Nodes, Limit: limits.Nodes}
	case size.Bytes > limits.Bytes:
		return &foreign.LimitError{What: foreign.Bytes, Limit: limits.Bytes}
	default:
		return nil
	}
}

// forgetRecord keeps nothing of a record that was read.
func (x *execution) forgetRecord(name string) {
	delete(x.storage.read, name)
	x.memory.forget(name)
}

// withObjectsLeft are the revisions before the newest whose objects may be left, the
// newest of them first: those since the last one that replaced all before it, and
// the deployed one. Numbers are sorted.
func withObjectsLeft(numbers []int, statuses map[int]Status) []int {
	older := slices.Clone(numbers[:max(0, len(numbers)-1)])
	slices.Reverse(older)

	latest := statuses[numbers[len(numbers)-1]]
	if latest == StatusDeployed || latest == StatusUninstalled {
		return nil
	}

	// What was uninstalled with its history has left nothing.
	if gone := slices.IndexFunc(older, func(number int) bool { return statuses[number] == StatusUninstalled }); gone >= 0 {
		older = older[:gone]
	}

	if deployed := slices.IndexFunc(older, func(number int) bool { return statuses[number] == StatusDeployed }); deployed >= 0 {
		return older[:deployed+1]
	}

	if replaced := slices.IndexFunc(older, func(number int) bool { return statuses[number] == StatusSuperseded }); replaced >= 0 {
		return older[:replaced]
	}

	return older
}
