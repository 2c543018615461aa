package helm

import (
	"fmt"

	releasev1 "helm.sh/helm/v4/pkg/release/v1"
)

// excludeOthers makes a rollback leave objects that others have by now: Helm's asks nobody, and writes over what another
// release or a user has made since a failed revision dropped it. A rollback is there to repair, so it goes on without
// them, and the revision that it makes does not name them.
func (c *Client) excludeOthers(x *execution, target, failed *releasev1.Release) error {
	targets, err := build(x, target.Manifest)
	if err != nil {
		return err
	}

	originals, err := build(x, failed.Manifest)
	if err != nil {
		return err
	}

	x.values.add(failed.Config) // errors name objects

	others, err := x.guard.Others(originals, targets)
	if err != nil {
		return fmt.Errorf("no object was changed, because %w", err)
	}

	if len(others) == 0 {
		return nil
	}

	reduced, err := c.without(target.Manifest, others)
	if err != nil {
		return err
	}

	x.storage.reduced, x.guard.Needed = &reduced, reduced
	tellKept(x, "not written by the rollback, and not part of the release any more, because others have them by now: ", others)

	return nil
}
