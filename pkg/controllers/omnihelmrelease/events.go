package omnihelmrelease

import (
	corev1 "k8s.io/api/core/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
)

// actionNames are the actions that end, and their names in events.
var actionNames = map[helm.Action]string{ //nolint:gochecknoglobals // a table
	helm.ActionInstall: "Install", helm.ActionUpgrade: "Upgrade", helm.ActionRollback: "Rollback", helm.ActionUninstall: "Uninstall",
	helm.ActionTest: "Test", helm.ActionUnlock: "Unlock", actionCorrect: "Correct",
}

// Actions returns the actions that are counted.
func Actions() []string {
	var actions []string

	for action := range actionNames {
		actions = append(actions, string(action))
	}

	return actions
}

// tell counts an action that has ended, and sends an event.
func (r *reconciler) tell(release *v1alpha1.OmniHelmRelease, action helm.Action, err error) {
	switch {
	case interrupted(err):
		r.options.Actions.Ended(string(action), metrics.HelmInterrupted)

		return // it is begun again, or a deletion follows
	case err != nil:
		r.options.Actions.Ended(string(action), metrics.HelmFailed)
	default:
		r.options.Actions.Ended(string(action), metrics.HelmSucceeded)
	}

	name := actionNames[action]

	if err == nil {
		r.events.Eventf(release, nil, corev1.EventTypeNormal, name+"Succeeded", name, "%s of release %s succeeded", action, fullName(release))

		return
	}

	r.events.Eventf(release, nil, corev1.EventTypeWarning, name+"Failed", name, "%s of release %s: %v", action, fullName(release), err)
}

// note returns a function that sends events about what an action did besides its result.
func (r *reconciler) note(release *v1alpha1.OmniHelmRelease) func(helm.Note, string) {
	return func(note helm.Note, text string) {
		r.events.Eventf(release, nil, corev1.EventTypeNormal, string(note), "Helm", "release %s: %s", fullName(release), text)
	}
}
