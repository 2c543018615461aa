package helm

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// getting is a gateway that has no route for reads of a path.
func getting(path string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == http.MethodGet && r.URL.Path == path }
}

// A gateway before the API answers 404 to everything while it has no route. An uninstall does not take that for an object that
// is gone, nor for a record that is.
func TestAnUninstallBehindAGatewayWithoutRoutes(t *testing.T) {
	one, older := configMap("one"), configMap("older")

	for name, routeless := range map[string]func() func(*http.Request) bool{
		"for an object":     func() func(*http.Request) bool { return getting(configMapPath("one")) },
		"for an old record": func() func(*http.Request) bool { return getting("/api/v1/namespaces/apps/secrets/" + key("demo", 2)) },
		"from the first object on": func() func(*http.Request) bool {
			var begun atomic.Bool

			return func(r *http.Request) bool {
				begun.CompareAndSwap(false, strings.Contains(r.URL.Path, "/configmaps/"))

				return begun.Load()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTried(t)
			r.wanted.Retries = 3
			r.want(ActionInstall, one)
			r.wantError(ActionUpgrade, one+older+notValid, "Not-Valid")
			r.wantError(ActionUpgrade, one+notValid, "Not-Valid")

			r.wanted.Absent, r.routeless = true, routeless()
			r.wantError(ActionUninstall, one)

			r.routeless = nil
			r.want(ActionUninstall, one)

			if r.of("one") != "" || r.of("older") != "" {
				t.Errorf("one is of %q, older of %q", r.of("one"), r.of("older"))
			}
		})
	}
}

// Of a kind that is not served any more, the API server itself answers in that way: there is no object of it.
func TestAnUninstallOfAKindThatGoes(t *testing.T) {
	r := newTried(t)
	r.versions = []string{"v1"}
	chart := configMap("one") + "---\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: two}\n"
	r.want(ActionInstall, chart)

	r.wanted.Absent = true
	r.routeless = func(request *http.Request) bool {
		if !strings.Contains(request.URL.Path, "/widgets/") {
			return false
		}

		r.mu.Lock()
		defer r.mu.Unlock()

		r.versions = nil // since somebody looked which kinds there are

		return true
	}
	r.want(ActionUninstall, chart)
}

// What a template looks up is not missing because of that.
func TestALookupBehindAGatewayWithoutRoutes(t *testing.T) {
	r := newTried(t)
	r.makeOf("there", "")
	r.routeless = getting(configMapPath("there"))

	chart := strings.ReplaceAll(configMap("one"), "{of: demo}", `{of: {{ dig "data" "of" "nobody" (lookup "v1" "ConfigMap" "apps" "there") }}}`)
	r.wantError(ActionInstall, chart, "could not find")

	r.routeless = nil
	r.want(ActionInstall, chart)

	if got := r.of("one"); got != "somebody" {
		t.Errorf("it was made of %s", got)
	}
}

// Somebody else's object is not removed because whose it is could not be read.
func TestAnUpgradeBehindAGatewayWithoutRoutes(t *testing.T) {
	one, dropped := configMap("one"), configMap("dropped")

	r := newTried(t)
	r.wanted.Retries = 2
	r.want(ActionInstall, one+dropped)
	r.remove(configMapPath("dropped"))
	r.makeOf("dropped", "another")

	var asked atomic.Bool // once

	r.routeless = func(request *http.Request) bool {
		return getting(configMapPath("dropped"))(request) && asked.CompareAndSwap(false, true)
	}
	r.wantError(ActionUpgrade, one, "ConfigMap apps/dropped", "it is served, but was not found")
	r.want(ActionUpgrade, one)

	if got := r.of("dropped"); got != "another" {
		t.Errorf("it is of %q", got)
	}
}
