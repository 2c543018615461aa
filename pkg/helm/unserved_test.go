package helm

import (
	"strings"
	"testing"
)

const widgetPath = "/apis/example.com/v1/namespaces/apps/widgets/w"

// widget is an object of a kind that comes and goes.
const widget = "---\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n"

// newWithWidget installs a release with a Widget.
func newWithWidget(t *testing.T, templates string) *tried {
	t.Helper()

	r := newTried(t)
	r.versions = []string{"v1"}
	r.want(ActionInstall, widget+templates)

	if r.get(widgetPath) == nil {
		t.Fatal("there is no Widget")
	}

	return r
}

// dropKind removes the kind, and all objects with it.
func (r *tried) dropKind() {
	r.versions = nil
	r.remove(widgetPath)
}

// What names a kind that the cluster does not serve any more is done without its objects, of which there are none.
func TestObjectsOfAKindThatIsNotServed(t *testing.T) {
	one, two := configMap("one"), configMap("two")

	for name, step := range map[string]func(r *tried){
		"uninstall": func(r *tried) {
			r.wanted.Absent = true
			r.want(ActionUninstall, one)

			if r.of("one") != "" || r.get("/api/v1/namespaces/apps/secrets/"+key("demo", 1)) != nil {
				r.t.Error("something is left")
			}
		},
		"upgrade": func(r *tried) {
			r.want(ActionUpgrade, two)

			if r.of("one") != "" || r.of("two") != "demo" {
				r.t.Errorf("one is of %q, two of %q", r.of("one"), r.of("two"))
			}

			if got := r.read(r.t, 1).Manifest; !strings.Contains(got, "Widget") {
				r.t.Errorf("the record of the former revision was changed: %s", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newWithWidget(t, one)
			r.dropKind()
			step(r)
			r.wantNote("ObjectsGone", "Widget w")

			if len(r.notes) != 1 {
				t.Errorf("told %q", r.notes)
			}
		})
	}
}

// A rollback does without such an object of the failed revision, and not without one that it would have to make.
func TestARollbackWithAKindThatIsNotServed(t *testing.T) {
	r := newTried(t)
	r.wanted.RollBack, r.versions = true, []string{"v1"}
	r.want(ActionInstall, configMap("one"))
	r.wantError(ActionUpgrade, widget+configMap("one")+notValid, "Not-Valid")
	r.dropKind()
	r.want(ActionRollback, widget+configMap("one")+notValid)
	r.wantNote("ObjectsGone", "Widget w")

	r = newWithWidget(t, configMap("one"))
	r.wanted.RollBack = true
	r.wantError(ActionUpgrade, configMap("two")+notValid, "Not-Valid")
	r.dropKind()
	r.wantError(ActionRollback, configMap("two")+notValid, "no matches for kind")

	if r.of("two") != "demo" || len(r.notes) > 0 {
		t.Errorf("two is of %q, told %q", r.of("two"), r.notes)
	}
}

// An install and an upgrade do not do without what they are to make.
func TestAnUpgradeToAKindThatIsNotServed(t *testing.T) {
	r := newTried(t)
	r.wantError(ActionInstall, widget+configMap("one"), "no matches for kind")
	r.want(ActionInstall, configMap("one"))
	r.wantError(ActionUpgrade, widget+configMap("two"), "no matches for kind")

	if r.of("one") != "demo" || r.of("two") != "" {
		t.Errorf("one is of %q, two of %q", r.of("one"), r.of("two"))
	}
}

// An API that does not answer for a while has objects: nothing is done without them.
func TestAnAPIThatIsAwayIsServed(t *testing.T) {
	for name, test := range map[string]struct {
		away, back func(r *tried)
	}{
		"its server does not answer":                     {func(r *tried) { r.away = true }, func(r *tried) { r.away = false }},
		"its server does not answer, of another version": {func(r *tried) { r.versions, r.away = []string{"v2"}, true }, func(r *tried) { r.versions, r.away = []string{"v1"}, false }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newWithWidget(t, configMap("one"))
			test.away(r)

			r.wantError(ActionUpgrade, configMap("two"), "Widget", "cannot be told")

			r.wanted.Absent = true
			r.wantError(ActionUninstall, configMap("one"), "Widget", "cannot be told")

			if r.get(widgetPath) == nil || r.of("one") != "demo" || len(r.notes) > 0 {
				t.Errorf("the Widget is %v, one is of %q, told %q", r.get(widgetPath), r.of("one"), r.notes)
			}

			test.back(r)
			r.want(ActionUninstall, configMap("one"))

			if r.get(widgetPath) != nil || r.of("one") != "" {
				t.Errorf("the Widget is %v, one is of %q", r.get(widgetPath), r.of("one"))
			}
		})
	}
}

// So it is with what a failed attempt has made.
func TestWhatAFailedAttemptMadeInAnAPIThatIsAway(t *testing.T) {
	r := newTried(t)
	r.versions = []string{"v1"}
	r.want(ActionInstall, configMap("one"))
	r.wantError(ActionUpgrade, widget+configMap("one")+notValid, "Not-Valid")

	r.away = true
	r.wantError(ActionUpgrade, configMap("two"), "Widget", "cannot be told")

	r.away = false
	r.want(ActionUpgrade, configMap("two"))

	if r.get(widgetPath) != nil || r.of("two") != "demo" {
		t.Errorf("the Widget is %v, two is of %q", r.get(widgetPath), r.of("two"))
	}
}

// An object is there still when only its version goes.
func TestAVersionThatIsNotServed(t *testing.T) {
	r := newWithWidget(t, configMap("one"))
	r.versions = []string{"v2"}
	r.put(strings.Replace(widgetPath, "/v1/", "/v2/", 1), r.get(widgetPath).DeepCopy().Object)
	r.remove(widgetPath)
	r.want(ActionUpgrade, configMap("one"))

	if r.get(strings.Replace(widgetPath, "/v1/", "/v2/", 1)) != nil || len(r.notes) > 0 {
		t.Errorf("the Widget is left; told %q", r.notes)
	}
}
