package helm

import (
	"net/http"
	"strings"
	"testing"
)

// hook is a ConfigMap as a hook of an event.
func hook(event, policy string) string {
	annotations := "helm.sh/hook: " + event
	if policy != "" {
		annotations += ", helm.sh/hook-delete-policy: " + policy
	}

	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: taken, annotations: {" + annotations + "}}\ndata: {of: hook}\n"
}

// Helm removes what has the name of a hook before it makes the hook, or after, and asks nobody whose it is.
func TestHooksSpareWhatAnotherReleaseHas(t *testing.T) {
	for _, policy := range []string{"", "hook-succeeded", "hook-failed"} {
		for _, takeOwnership := range []bool{false, true} {
			r := newTried(t)
			r.settings.TakeOwnership = takeOwnership
			r.makeOf("taken", "another")
			before := r.get(configMapPath("taken"))

			r.wantError(ActionInstall, configMap("one")+hook("pre-install", policy), "ConfigMap apps/taken belongs to Helm release apps/another", "hook", "disableHooks")

			if after := r.get(configMapPath("taken")); after == nil || after.GetUID() != before.GetUID() || r.of("taken") != "another" {
				t.Errorf("policy %q: it is of %q", policy, r.of("taken"))
			}
		}
	}
}

// What a hook has made before bears no marks, and is replaced.
func TestHooksReplaceTheirOwn(t *testing.T) {
	r := newTried(t)
	r.want(ActionInstall, configMap("one")+hook("pre-install", "")+strings.ReplaceAll(hook("pre-upgrade", ""), "hook}", "second}"))
	r.makeOf("taken", "")
	r.want(ActionUpgrade, configMap("two")+strings.ReplaceAll(hook("pre-upgrade", ""), "of: hook", "of: next"))

	if got := r.of("taken"); got != "next" {
		t.Errorf("the hook is of %q", got)
	}
}

// An uninstall that cannot run its hooks keeps the release; without them it goes on.
func TestAnUninstallWithAHookThatIsInTheWay(t *testing.T) {
	r := newTried(t)
	chart := configMap("one") + hook("pre-delete", "")
	r.want(ActionInstall, chart)
	r.makeOf("taken", "another")

	r.wanted.Absent = true
	r.wantError(ActionUninstall, chart, "ConfigMap apps/taken belongs to Helm release apps/another")

	if r.of("one") != "demo" {
		t.Error("an object was removed")
	}

	r.settings.DisableHooks = true
	r.want(ActionUninstall, chart)

	if r.of("one") != "" || r.of("taken") != "another" {
		t.Errorf("one is of %q, taken of %q", r.of("one"), r.of("taken"))
	}
}

// Another release may be quicker than a hook that takes its time.
func TestAnInstallLooksAgainBeforeItWrites(t *testing.T) {
	r := newTried(t)
	r.before = func(request *http.Request) {
		if request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/taken") {
			r.makeOf("late", "another")
		}
	}

	r.wantError(ActionInstall, configMap("late")+configMap("one")+hook("pre-install", ""), "ConfigMap apps/late belongs to Helm release apps/another", "takeOwnership")

	if r.of("late") != "another" {
		t.Errorf("late is of %q", r.of("late"))
	}
}
