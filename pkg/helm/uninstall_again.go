package helm

import (
	"slices"

	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
)

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
