package helm

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
)

// An uninstall that is tried again does not run hooks again that have succeeded in it: what they need may be gone by now.
func TestAnUninstallRunsItsHooksOnce(t *testing.T) {
	for name, policy := range map[string]string{"kept": "", "removed": "hook-succeeded"} {
		t.Run(name, func(t *testing.T) {
			r := newTried(t)
			after := strings.ReplaceAll(hook("post-delete", ""), "taken", "after")
			chart := configMap("one") + configMap("two") + hook("pre-delete", policy) + after
			r.want(ActionInstall, chart)

			made := map[string]int{}
			r.before = func(request *http.Request) {
				if request.Method == http.MethodPatch || request.Method == http.MethodPost {
					made[request.URL.Path]++
				}
			}

			r.wanted.Absent, r.hidden = true, configMapPath("two")

			for range 3 {
				if got, err := r.step(chart); got != ActionUninstall || err == nil || !strings.Contains(err.Error(), "ConfigMap apps/two") {
					t.Fatalf("%s: %v", got, err)
				}
			}

			if left := r.read(t, 1); left.Info.Status != common.StatusUninstalling || len(left.Hooks) != 2 || len(preDelete(left)) != 1 {
				t.Errorf("the record is %s, with hooks %+v", left.Info.Status, left.Hooks)
			}

			r.hidden = ""
			r.want(ActionUninstall, chart)

			if made[configMapPath("taken")] != 1 || made[configMapPath("after")] != 4 {
				t.Errorf("made: %v", made)
			}

			if kept := r.of("taken") != ""; kept != (policy == "") {
				t.Errorf("the hook's object is kept: %t", kept)
			}
		})
	}
}

// A hook that runs before and after the objects are deleted has succeeded before they are, whatever becomes of it then.
func TestAnUninstallRunsAHookForBothOnceBefore(t *testing.T) {
	r := newTried(t)
	chart := configMap("one") + configMap("two") + hook(`"pre-delete,post-delete"`, "")
	r.want(ActionInstall, chart)

	made := 0
	r.before = func(request *http.Request) {
		if isMade := request.Method == http.MethodPatch || request.Method == http.MethodPost; isMade && request.URL.Path == configMapPath("taken") {
			made++
		}
	}

	r.wanted.Absent, r.hidden = true, configMapPath("two")

	for range 3 {
		if got, err := r.step(chart); got != ActionUninstall || err == nil || !strings.Contains(err.Error(), "ConfigMap apps/two") {
			t.Fatalf("%s: %v", got, err)
		}
	}

	if made != 4 { // once before, and after each try
		t.Errorf("it was made %d times", made)
	}
}

func preDelete(record *releasev1.Release) []*releasev1.Hook {
	var found []*releasev1.Hook

	for _, one := range record.Hooks {
		if isPreDelete(one) {
			found = append(found, one)
		}
	}

	return found
}

// What has not succeeded, or not in this uninstall, runs again.
func TestHooksOfAnUninstallThatRunAgain(t *testing.T) {
	began := time.Now().Add(-time.Minute)
	ran := func(at time.Time, phase releasev1.HookPhase, events ...releasev1.HookEvent) *releasev1.Hook {
		return &releasev1.Hook{Events: events, LastRun: releasev1.HookExecution{StartedAt: at, Phase: phase}}
	}
	done := ran(began, releasev1.HookPhaseSucceeded, releasev1.HookPreDelete)

	for name, test := range map[string]struct {
		status  common.Status
		deleted time.Time
		hooks   []*releasev1.Hook
		want    bool
	}{
		"all have succeeded":         {common.StatusUninstalling, began, []*releasev1.Hook{done, ran(time.Time{}, "", releasev1.HookPreInstall)}, true},
		"there are none":             {common.StatusUninstalling, began, []*releasev1.Hook{ran(time.Time{}, "", releasev1.HookPostDelete)}, true},
		"one has failed":             {common.StatusUninstalling, began, []*releasev1.Hook{done, ran(began, releasev1.HookPhaseFailed, releasev1.HookPreDelete)}, false},
		"one ran":                    {common.StatusUninstalling, began, []*releasev1.Hook{done, ran(began, releasev1.HookPhaseRunning, releasev1.HookPreDelete)}, false},
		"one did not run":            {common.StatusUninstalling, began, []*releasev1.Hook{done, ran(time.Time{}, "", releasev1.HookPreDelete)}, false},
		"for another event, before":  {common.StatusUninstalling, began, []*releasev1.Hook{ran(began.Add(-time.Second), releasev1.HookPhaseSucceeded, releasev1.HookPreUpgrade, releasev1.HookPreDelete)}, false},
		"the revision is deployed":   {common.StatusDeployed, began, []*releasev1.Hook{done}, false},
		"the revision was unlocked":  {common.StatusFailed, began, []*releasev1.Hook{done}, false},
		"it is not said when":        {common.StatusUninstalling, time.Time{}, []*releasev1.Hook{done}, false},
		"an entry that holds no one": {common.StatusUninstalling, began, []*releasev1.Hook{nil, done}, true},
	} {
		t.Run(name, func(t *testing.T) {
			one := record(1, test.status)
			one.Info.Deleted, one.Hooks = test.deleted, test.hooks

			if got := hooksDone(one); got != test.want {
				t.Errorf("done: %t", got)
			}
		})
	}
}
