package helm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	releasev1 "helm.sh/helm/v4/pkg/release/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// Drift compares the stored manifest of a revision with the cluster, by
// server-side dry runs: what the server would change is what differs. Objects
// of hooks are not looked at. An object that cannot be compared does not keep the
// others from it: then there are differences and an error. Errors are *Error, or
// ErrRevisionGone.
func (c *Client) Drift(ctx context.Context, revision int, ignores []drift.Ignore) ([]drift.Difference, error) {
	return c.compare(ctx, revision, ignores, nil)
}

// Correct applies the objects again that Drift finds, and returns what was
// different. Ignored paths keep what stands there. Only the latest revision is
// applied, if it is deployed; of another one the error has ReasonInterrupted. begin
// is asked behind all waits for memory and before the first change; its error ends the
// correction with nothing changed. It returns soon after the end of ctx; the error of one that does not end by itself then has Still.
func (c *Client) Correct(ctx context.Context, revision int, ignores []drift.Ignore, begin func() error) ([]drift.Difference, error) {
	var found []drift.Difference

	err := runBounded(ctx, func() (err error) {
		found, err = c.compare(ctx, revision, ignores, func() error {
			if err := c.inEffect(ctx, revision); err != nil {
				return err
			}

			return begin()
		})

		return err
	})

	var endless *endlessError
	if errors.As(err, &endless) {
		// What was found may still be written.
		return nil, &Error{Reason: ReasonTimeout, Still: endless.returned, Message: fmt.Sprintf("applying objects again did not end in time: %s", endless)}
	}

	return found, err
}

// release is the release for the package drift.
func (c *Client) release() drift.Release {
	return drift.Release{Name: c.target.Name, Namespace: c.target.Namespace, FieldManager: FieldManager}
}

// awaitRecord reads the record of a revision when there is memory for it and its manifest.
func (c *Client) awaitRecord(ctx context.Context, revision int, memory *memoryShare) (record *releasev1.Release, err error) {
	err = memory.do(ctx, func() error {
		record, err = c.record(ctx, revision, memory)

		return err
	}, func() error { return nil })

	if err != nil && ctx.Err() != nil && !errors.As(err, new(*Error)) {
		reason := ReasonUnavailable
		if errors.Is(ctx.Err(), context.Canceled) { // who is stopped has not failed
			reason = ReasonInterrupted
		}

		return nil, &Error{Reason: reason, Message: err.Error()}
	}

	return record, err
}

// inEffect is an error unless a revision is the latest and deployed: the wait for memory may have been long, and what an older
// one says must not be forced over what a later one makes.
func (c *Client) inEffect(ctx context.Context, revision int) error {
	observed, err := c.Observe(ctx)
	if err != nil {
		return err
	}

	if latest := observed.Latest(); latest == nil || latest.Number != revision || latest.Status != StatusDeployed {
		return &Error{Reason: ReasonInterrupted, Message: fmt.Sprintf("revision %d is not the one in effect any more, so nothing was applied again; "+
			"what to do is decided anew", revision)}
	}

	return nil
}

// compare finds what differs; with mayCorrect, which is asked first, each such object is applied again.
func (c *Client) compare(ctx context.Context, revision int, ignores []drift.Ignore, mayCorrect func() error) ([]drift.Difference, error) {
	memory := newMemoryShare(c.target.Tenant, false)
	defer memory.giveBack()

	record, err := c.awaitRecord(ctx, revision, memory)
	if err != nil {
		return nil, err
	}

	if mayCorrect != nil {
		if err := mayCorrect(); err != nil {
			return nil, err
		}
	}

	x, err := c.open(ctx, values.Values{}, memory)
	if err != nil {
		return nil, err
	}

	var (
		differences []drift.Difference
		problems    []error
	)

	objects, err := x.config.KubeClient.Build(strings.NewReader(record.Manifest), false)
	if err != nil {
		failed := classify("read the manifest of the release", err, c.redactorFor(values.Values{}))
		if len(objects) == 0 || endsComparison(ctx, failed) {
			return nil, failed
		}

		// A kind that the cluster does not know any more, for example.
		problems = append(problems, failed)
	}

	release := c.release()

	for _, info := range objects {
		difference, err := release.Compare(info, ignores, mayCorrect != nil)
		if difference != nil {
			differences = append(differences, difference.Without(c.scrub))
		}

		if err == nil {
			continue
		}

		failed := classify("compare "+drift.Identify(info).String(), err, c.redactorFor(values.Values{}))
		if problems = append(problems, failed); endsComparison(ctx, failed) {
			break
		}
	}

	return differences, summed(problems)
}

// endsComparison reports whether the next object would fail in the same way, after
// a long wait.
func endsComparison(ctx context.Context, failed error) bool {
	var failure *Error
	if !errors.As(failed, &failure) {
		return true
	}

	return ctx.Err() != nil || failure.Reason == ReasonUnreachable || failure.Reason == ReasonTimeout || failure.Reason == ReasonInterrupted
}

// maxNamedProblems is how many objects that could not be compared are named.
const maxNamedProblems = 3

// summed makes one error of all; the last one tells why a comparison has ended.
func summed(problems []error) error {
	if len(problems) == 0 {
		return nil
	}

	var (
		texts   []string
		failure *Error
	)

	for _, problem := range problems {
		texts = append(texts, problem.Error())
	}

	reason := ReasonFailed
	if errors.As(problems[len(problems)-1], &failure) {
		reason = failure.Reason
	}

	return &Error{Reason: reason, Message: words.Few(texts, maxNamedProblems, "; ")}
}
