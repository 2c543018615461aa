package helm

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"helm.sh/helm/v4/pkg/storage/driver"

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
