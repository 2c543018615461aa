package helm

import (
	"fmt"

	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
)

// unlock marks a revision as failed whose action has no result. If it has one
// by now, that counts.
func (c *Client) unlock(s *session, revision int) error {
	return c.change(s, revision, func(record *releasev1.Release) {
		if status := Status(record.Info.Status); !status.pending() && status != StatusUnknown {
			return
		}

		record.SetStatus(common.StatusFailed, fmt.Sprintf("was left %s by an action that never ended", record.Info.Status))
	})
}

// interrupted marks a revision that a stop of the controller ended, so that it
// is made again under its own number. If there is no time for that, it stays
// pending, which leads to the same.
func (c *Client) interrupted(s *session, request Request, cause error) error {
	failure := &Error{Reason: ReasonInterrupted, Message: fmt.Sprintf("%s was interrupted by a stop of the controller: %s", request.Decision.Action,
		s.values.redact(cause.Error()))}

	if request.Decision.Action != ActionInstall && request.Decision.Action != ActionUpgrade {
		return failure
	}

	last, err := s.config.Releases.Last(c.target.Name)
	if err != nil {
		return failure
	}

	record, err := asRelease(last)
	if err != nil || record.Info.Status != common.StatusFailed || record.Labels[labelAttempt] != request.Wanted.Attempt {
		return failure
	}

	if err := c.change(s, record.Version, func(record *releasev1.Release) { record.Labels[labelInterrupted] = "true" }); err != nil {
		c.log.Info("an interrupted revision could not be marked", "release", c.target.Name, "error", s.values.redact(err.Error()))
	}

	return failure
}

// change reads, changes and writes the record of a revision.
func (c *Client) change(s *session, revision int, change func(*releasev1.Release)) error {
	var (
		found release.Releaser
		err   error
	)

	if found, err = s.config.Releases.Get(c.target.Name, revision); err != nil {
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

	if err := s.config.Releases.Update(record); err != nil {
		return fmt.Errorf("write revision %d: %w", revision, err)
	}

	return nil
}
