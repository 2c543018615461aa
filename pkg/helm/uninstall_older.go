package helm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
)

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
