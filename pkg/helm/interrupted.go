package helm

import (
	"fmt"
	"strconv"

	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
)

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
