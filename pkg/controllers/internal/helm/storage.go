package helm

import (
	"errors"
	"maps"
	"strconv"

	"helm.sh/helm/v4/pkg/release"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
)

// resumable is Helm's storage, with three additions.
//
// One revision can be hidden, whose action was interrupted: Helm then makes the
// next revision under the same number, and the old record is overwritten in one
// step. So a crash causes no second revision, and there is a record of what the
// crash left behind at every moment.
//
// Each record that is made here names its own number in a label: other clients
// copy our labels to the revisions that they make, and those are not ours.
//
// And the first record that an action makes is told of: from then on, what the
// action does has to be ended in order.
type resumable struct {
	driver.Driver

	release string
	hidden  int // number of the hidden revision; 0 hides none
	begun   func()
}

// Get implements driver.Driver.
func (r *resumable) Get(name string) (release.Releaser, error) {
	if r.hides(name) {
		return nil, driver.ErrReleaseNotFound
	}

	return r.Driver.Get(name)
}

// Query implements driver.Driver.
func (r *resumable) Query(labels map[string]string) ([]release.Releaser, error) {
	all, err := r.Driver.Query(labels)
	if err != nil || r.hidden == 0 {
		return all, err
	}

	var visible []release.Releaser

	for _, one := range all {
		if revision, ok := one.(*releasev1.Release); !ok || revision.Version != r.hidden {
			visible = append(visible, one)
		}
	}

	if len(visible) == 0 {
		return nil, driver.ErrReleaseNotFound
	}

	return visible, nil
}

// Create implements driver.Driver.
func (r *resumable) Create(name string, made release.Releaser) error {
	defer r.begun()

	if record, ok := made.(*releasev1.Release); ok {
		labels := maps.Clone(record.Labels)
		if labels == nil {
			labels = map[string]string{}
		}

		labels[labelRevision] = strconv.Itoa(record.Version)
		record.Labels = labels
	}

	if r.hides(name) {
		r.hidden = 0

		return r.Driver.Update(name, made)
	}

	if err := r.Driver.Create(name, made); err != nil || r.hidden == 0 {
		return err
	}

	// Helm counts from the start again if it sees no other revision.
	obsolete := key(r.release, r.hidden)
	r.hidden = 0

	if _, err := r.Driver.Delete(obsolete); err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		return err
	}

	return nil
}

func (r *resumable) hides(name string) bool { return r.hidden != 0 && name == key(r.release, r.hidden) }
