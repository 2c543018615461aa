package helm

import (
	"net/http"
	"strings"
	"testing"
)

// both is one ConfigMap as a hook and in the templates.
func both(event, policy string) string { return hook(event, policy) + configMap("taken") }

// failingHook is a hook that runs behind the one of both.
func failingHook(event string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: next, annotations: {helm.sh/hook: " + event + ", helm.sh/hook-weight: \"1\"}}\n"
}

// A hook bears no marks, and is the release's when the template of the same object comes.
func TestAnUpgradeAddsWhatIsAHookAndATemplate(t *testing.T) {
	for _, policy := range []string{"", "hook-failed"} {
		r := newTried(t)
		r.want(ActionInstall, configMap("one"))
		r.want(ActionUpgrade, configMap("one")+both("pre-upgrade", policy))

		if got := r.of("taken"); got != "demo" {
			t.Errorf("policy %q: it is of %q", policy, got)
		}

		r.want(ActionUpgrade, configMap("two")+both("pre-upgrade", policy))
		r.want(ActionUpgrade, configMap("two"))

		if got := r.of("taken"); got != "" {
			t.Errorf("policy %q: it is left, of %q", policy, got)
		}
	}
}

// An attempt may end between its hooks and its update.
func TestARetryTakesWhatAHookHasMade(t *testing.T) {
	for _, policy := range []string{"", "hook-failed"} {
		for event, action := range map[string]Action{"pre-install": ActionInstall, "pre-upgrade": ActionUpgrade} {
			r := newTried(t)
			r.wanted.Retries = 5

			if action == ActionUpgrade {
				r.want(ActionInstall, configMap("one"))
			}

			next := configMap("one") + both(event, policy) + failingHook(event)
			r.unwritable = configMapPath("next")

			for range 2 {
				r.wantError(action, next, "may not be written")
			}

			r.unwritable = ""
			r.want(action, next)

			if got := r.of("taken"); got != "demo" {
				t.Errorf("%s, policy %q: it is of %q", event, policy, got)
			}
		}
	}
}

// A rollback removes what the hook of the failed revision has made, so that it is not in the way of the next one.
func TestARollbackRemovesWhatAHookHasMade(t *testing.T) {
	r := newTried(t)
	r.wanted.RollBack = true
	r.want(ActionInstall, configMap("one"))

	next := configMap("one") + both("pre-upgrade", "hook-failed")
	r.unwritable = configMapPath("next")
	r.wantError(ActionUpgrade, next+failingHook("pre-upgrade"), "may not be written")
	r.want(ActionRollback, next+failingHook("pre-upgrade"))

	if got := r.of("taken"); got != "" {
		t.Errorf("it is left, of %q", got)
	}

	r.want(ActionUpgrade, next)
}

// What no hook has made is somebody else's, also if a hook names it that has not run.
func TestAnUpgradeDoesNotTakeWhatNoHookHasMade(t *testing.T) {
	for _, disabled := range []bool{false, true} {
		r := newTried(t)
		r.want(ActionInstall, configMap("one"))

		next := configMap("one") + both("post-upgrade", "")
		if disabled {
			next = configMap("one") + both("pre-upgrade", "")
		}

		r.settings.DisableHooks = disabled
		r.before = func(request *http.Request) {
			if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/secrets") { // the record of the revision
				r.makeOf("taken", "")
			}
		}
		r.wantError(ActionUpgrade, next, "ConfigMap apps/taken exists and bears no marks")
		r.before = func(*http.Request) {}
		r.wantError(ActionUpgrade, next, "cannot be imported")

		if got := r.of("taken"); got != "somebody" {
			t.Errorf("it is of %q", got)
		}
	}
}

// What a hook has made may be gone by the next attempt, and somebody else's object have its name.
func TestAnObjectInPlaceOfAHooks(t *testing.T) {
	r := newTried(t)
	r.wanted.Retries = 5
	r.want(ActionInstall, configMap("one"))

	next := configMap("one") + both("pre-upgrade", "hook-failed") + failingHook("pre-upgrade")
	r.unwritable = configMapPath("next")
	r.wantError(ActionUpgrade, next, "may not be written")

	r.remove(configMapPath("taken"))
	r.makeOf("taken", "")
	r.unwritable = ""
	r.wantError(ActionUpgrade, next, "taken")

	if got := r.of("taken"); got != "somebody" {
		t.Errorf("it is of %q", got)
	}
}
