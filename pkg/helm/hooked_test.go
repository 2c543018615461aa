package helm

import (
	"net/http"
	"strings"
	"testing"
)

// both is one ConfigMap as a hook and in the templates.
func both(event, policy string) string { return hook(event, policy) + configMap("taken") }

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
