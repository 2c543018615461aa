package helm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// resumable is Helm's storage for one action, with these additions.
//
// One revision can be hidden, the newest, whose action was interrupted: the next
// revision then gets its number, whatever Helm counts, and the old record is
// overwritten in one step. So a crash causes no second revision, and there is a
// record of what the crash left behind at every moment.
//
// Each record that is made here names its own number, its owner and the process that
// made it in labels: other clients copy our labels to the revisions that they make,
// and those are not ours.
//
// A write that says that the action has succeeded is tried again if the cluster does not answer it, as is one that says that a
// revision is replaced by that: Helm tries once, and passes over most of these errors. It names no version of the record, so it
// may be made twice. A failure that is not written leaves a revision that is made again, which is right where the cluster is away.
//
// If a stop of the controller ends the action, the record says so in the same write that says that it failed: a process that
// dies behind that write leaves no failure, from which the next one would roll back.
//
// A revision that was uninstalled with its history stays uninstalled. Helm calls it superseded when the release is
// installed again, and the rollback of that install would bring back what somebody has removed.
//
// A rollback records a manifest without the objects that others have by now. Nothing that comes after it takes them for
// the release's, and going back to the same content by hand is a new revision, which says that they are in the way.
//
// The first record that an action makes is told of: from then on, what the
// action does has to be ended in order.
//
// Helm is given a chart that prints what was rendered elsewhere.
// The chart itself is recorded.
//
// And a record is read once. Helm lists all of a release's records, with the
// charts in them, many times in one action. Here the labels of the records are
// listed once, or not at all if they are known, and only those records are read
// that Helm looks into: the newest, and the one that is deployed. The others are
// placeholders, and never written.
type resumable struct {
	driver.Driver

	release string
	hidden  int    // number of the hidden revision; 0 hides none
	process string // that makes records now
	// owner of what is made, its hub and generation: a rollback takes labels from the revision that it goes back to.
	owner, hub string
	generation int64
	begun      func()
	// redact keeps values out of what is recorded of a failure, which is shown again when the controller has forgotten the error.
	redact func(text string) string
	// stopped reports whether the action is being ended by a stop of the controller, so that what fails now did not fail by itself.
	stopped func() bool
	// rollback leaves revisions failed that have failed. Helm calls one superseded when
	// a rollback from it fails, too: the next rollback would go to it.
	rollback bool
	// made is the manifest of the revision that the action makes; empty before there is one.
	made string
	// makes is the name of that revision's record; empty before there is one.
	makes string
	// result is the name of the record that says how the action has ended; empty before there is one.
	result string
	// unwritten is why that could not be written.
	unwritten error
	// again waits before a write is tried again, and reports whether it may be.
	again func(tries int) bool
	// goesOn is the record of an uninstall that is behind its pre-delete hooks, as it was then; nil if none is.
	goesOn *releasev1.Release
	// prerendered is what Helm takes for the chart, original what is recorded instead; nil if no chart is needed.
	prerendered, original *chart.Chart
	// unchecked is true if the values were not checked against a schema of that chart.
	unchecked bool
	// list tells which revisions there are.
	list func() (Observed, error)
	// keep says why no record may be removed; nil, or a nil error, if one may be.
	keep func() error

	statuses     map[int]Status // of all revisions; nil before they were listed
	read         map[string]*releasev1.Release
	placeholders map[*releasev1.Release]struct{}
}

func newResumable(wrapped driver.Driver, name string, list func() (Observed, error)) *resumable {
	return &resumable{
		Driver: wrapped, release: name, begun: func() {}, redact: func(text string) string { return text }, stopped: func() bool { return false }, list: list,
		again: func(int) bool { return false },
		read:  map[string]*releasev1.Release{}, placeholders: map[*releasev1.Release]struct{}{},
	}
}

// Get implements driver.Driver.
func (r *resumable) Get(name string) (release.Releaser, error) {
	if r.hides(name) {
		return nil, driver.ErrReleaseNotFound
	}

	if kept := r.read[name]; kept != nil {
		return copyRecord(kept), nil
	}

	found, err := r.Driver.Get(name)
	if err != nil {
		return nil, err
	}

	record, err := asRelease(found)
	if err != nil {
		return nil, err
	}

	r.read[name] = copyRecord(record)

	return record, nil
}

// Query implements driver.Driver. Of the labels only the status counts: the
// others name the release, and there is but one.
func (r *resumable) Query(labels map[string]string) ([]release.Releaser, error) {
	numbers, err := r.visible()
	if err != nil {
		return nil, err
	}

	var found []release.Releaser

	for i, number := range numbers {
		if status := labels["status"]; status != "" && status != string(r.statuses[number]) {
			continue
		}

		if i < len(numbers)-1 && r.statuses[number] != StatusDeployed {
			found = append(found, r.placeholder(number))

			continue
		}

		one, err := r.Get(key(r.release, number))
		if errors.Is(err, driver.ErrReleaseNotFound) {
			return nil, changedMeanwhile(r.release, number)
		}

		if err != nil {
			return nil, err
		}

		found = append(found, one)
	}

	if len(found) == 0 {
		return nil, driver.ErrReleaseNotFound
	}

	return found, nil
}

// visible are the numbers of all revisions but the hidden one, the newest last.
func (r *resumable) visible() ([]int, error) {
	numbers, err := r.numbers()

	return slices.DeleteFunc(numbers, func(number int) bool { return number == r.hidden }), err
}

// numbers are those of all revisions, the newest last.
func (r *resumable) numbers() ([]int, error) {
	if r.statuses == nil {
		observed, err := r.list()
		if err != nil {
			return nil, err
		}

		r.statuses = map[int]Status{}
		for i := range observed.Revisions {
			r.statuses[observed.Revisions[i].Number] = observed.Revisions[i].Status
		}

		// What was read or written here before counts more.
		for _, record := range r.read {
			r.statuses[record.Version] = Status(record.Info.Status)
		}
	}

	return slices.Sorted(maps.Keys(r.statuses)), nil
}

// placeholder stands for a record of which Helm wants to know its number and status only.
func (r *resumable) placeholder(number int) *releasev1.Release {
	made := &releasev1.Release{Name: r.release, Version: number, Info: &releasev1.Info{Status: common.Status(r.statuses[number])}}
	r.placeholders[made] = struct{}{}

	return made
}

// Create implements driver.Driver.
func (r *resumable) Create(name string, made release.Releaser) error {
	defer func() { r.begun() }()

	record, err := asRelease(made)
	if err != nil {
		return err
	}

	r.restore(record)

	again := r.hidden != 0

	switch {
	case again && record.Version > r.hidden:
		return changedMeanwhile(r.release, record.Version)
	case again:
		// Helm counts from what it sees: what was before the hidden revision may have been removed.
		record.Version, name, r.hidden = r.hidden, key(r.release, r.hidden), 0
	}

	r.sign(record)

	r.made, r.makes, r.result = record.Manifest, name, name

	if again {
		err := r.Update(name, made)
		if errors.Is(err, driver.ErrReleaseNotFound) || apierrors.IsNotFound(err) {
			return changedMeanwhile(r.release, record.Version)
		}

		return err
	}

	if err := r.Driver.Create(name, made); errors.Is(err, driver.ErrReleaseExists) {
		return changedMeanwhile(r.release, record.Version)
	} else if err != nil {
		return err
	}

	r.note(name, record)

	return nil
}

// sign writes into a new record what it is, and who makes it.
func (r *resumable) sign(record *releasev1.Release) {
	labels := map[string]string{}
	maps.Copy(labels, record.Labels)

	labels[labelRevision], labels[labelProcess] = strconv.Itoa(record.Version), r.process
	labels[labelOwner], labels[labelHub], labels[labelGeneration] = r.owner, r.hub, strconv.FormatInt(r.generation, 10)
	record.Labels = labels
}

// Update implements driver.Driver.
func (r *resumable) Update(name string, changed release.Releaser) error {
	record, err := asRelease(changed)
	if err != nil {
		return err
	}

	r.passedHooks(record)
	r.restore(record)

	if _, placeholder := r.placeholders[record]; placeholder {
		return fmt.Errorf("revision %d was not read and must not be written", record.Version)
	}

	if known := r.read[name]; known != nil && record.Info.Status == common.StatusSuperseded && r.neverSuperseded(known.Info.Status) {
		return nil
	}

	if record.Info.Status == common.StatusFailed {
		record.Info.Description = r.redact(record.Info.Description)
	}

	if r.stopped() && record.Info.Status == common.StatusFailed && r.isPending(name) {
		labels := map[string]string{}
		maps.Copy(labels, record.Labels)
		labels[labelInterrupted] = "true"
		record.Labels = labels
	}

	if err := r.write(name, record); err != nil {
		return err
	}

	r.note(name, record)

	return nil
}

// write overwrites a record.
func (r *resumable) write(name string, record *releasev1.Release) error {
	err := r.Driver.Update(name, record)

	succeeded := name == r.result && record.Info.Status == common.StatusDeployed
	if replaced := r.result != "" && record.Info.Status == common.StatusSuperseded; !succeeded && !replaced {
		return err
	}

	for tries := 1; err != nil && passes(err); tries++ {
		if !r.again(tries) {
			err = &unwrittenError{record: name, cause: err}

			break
		}

		// At the end of the time, what the cluster has said before says more.
		if next := r.Driver.Update(name, record); !errors.Is(next, context.Canceled) {
			err = next
		}
	}

	if succeeded {
		r.unwritten = err
	}

	return err
}

// neverSuperseded reports whether a record keeps its status where Helm calls it superseded, which stands for one that a
// rollback may go back to.
func (r *resumable) neverSuperseded(status common.Status) bool {
	return r.rollback && status == common.StatusFailed || status == common.StatusUninstalled
}

// Delete implements driver.Driver.
func (r *resumable) Delete(name string) (release.Releaser, error) {
	if r.keep != nil {
		if err := r.keep(); err != nil {
			return nil, err
		}
	}

	deleted, err := r.Driver.Delete(name)
	if err != nil {
		return nil, err
	}

	delete(r.read, name)
	maps.DeleteFunc(r.statuses, func(number int, _ Status) bool { return key(r.release, number) == name })

	return deleted, nil
}

// restore puts into a record what was kept from Helm: the chart in the place of its stand-in, and the hooks that an uninstall passes over,
// with the time since which they count.
func (r *resumable) restore(record *releasev1.Release) {
	if r.prerendered != nil && record.Chart == r.prerendered {
		record.Chart = r.original
	}

	if r.goesOn == nil || record.Version != r.goesOn.Version {
		return
	}

	record.Info.Deleted = r.goesOn.Info.Deleted

	for i, hook := range r.goesOn.Hooks {
		if hook == nil {
			continue
		}

		record.Hooks[i].Events = hook.Events

		// It may be a post-delete hook, too, and run as one.
		if isPreDelete(hook) {
			record.Hooks[i].LastRun = hook.LastRun
		}
	}
}

// note remembers what was written.
func (r *resumable) note(name string, record *releasev1.Release) {
	r.read[name] = copyRecord(record)

	if r.statuses != nil && record.Info != nil {
		r.statuses[record.Version] = Status(record.Info.Status)
	}
}

// isPending reports whether a record was read or written here as one whose action has no result yet.
func (r *resumable) isPending(name string) bool {
	known := r.read[name]

	return known != nil && Status(known.Info.Status).pending()
}

func (r *resumable) hides(name string) bool { return r.hidden != 0 && name == key(r.release, r.hidden) }

// copyRecord copies what Helm changes in a record: it changes what it reads, and
// does not always write it.
func copyRecord(record *releasev1.Release) *releasev1.Release {
	copied := *record
	copied.Labels = maps.Clone(record.Labels)

	if record.Info != nil {
		info := *record.Info
		copied.Info = &info
	}

	copied.Hooks = slices.Clone(record.Hooks)
	for i, hook := range copied.Hooks {
		if hook != nil {
			own := *hook
			copied.Hooks[i] = &own
		}
	}

	return &copied
}

// changedMeanwhile is the error when somebody else was at the release.
func changedMeanwhile(release string, number int) error {
	return &Error{Reason: ReasonInterrupted, Message: fmt.Sprintf("somebody else made or removed revision %d at the same time; what to do is decided anew. "+
		"If this is said again and again, look at the labels of Secret %s: Helm finds its records by them", number, key(release, number))}
}
