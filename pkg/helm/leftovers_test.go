package helm

import (
	"strings"
	"testing"
)

// lifeStep is one step of the life of a release.
type lifeStep struct {
	action Action
	fails  bool
	chart  string
}

// What attempts made that failed goes with the next one that succeeds, whichever names it.
func TestFailedAttemptsOrphanNothing(t *testing.T) {
	one, two, three := configMap("one"), configMap("two"), configMap("three")

	for name, test := range map[string]struct {
		rollBack bool
		steps    []lifeStep
		kept     string
	}{
		"upgrades": {steps: []lifeStep{
			{ActionInstall, false, one},
			{ActionUpgrade, true, one + two + notValid},
			{ActionUpgrade, true, one + notValid},
			{ActionUpgrade, false, three},
		}, kept: "three"},
		"the deployed content again": {steps: []lifeStep{
			{ActionInstall, false, one},
			{ActionUpgrade, true, one + two + notValid},
			{ActionUpgrade, false, one},
		}, kept: "one"},
		"installs": {steps: []lifeStep{
			{ActionInstall, true, one + notValid},
			{ActionUpgrade, true, two + notValid},
			{ActionUpgrade, false, three},
		}, kept: "three"},
		"a rollback that failed": {rollBack: true, steps: []lifeStep{
			{ActionInstall, false, three},
			{ActionUpgrade, true, two + notValid},
			{ActionRollback, true, two + notValid}, // the server refuses one of its objects
			{ActionRollback, false, two + notValid},
		}, kept: "three"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTried(t)
			r.wanted.RollBack = test.rollBack

			for i, step := range test.steps {
				r.unwritable = ""
				if step.action == ActionRollback && step.fails {
					r.unwritable = configMapPath("three")
				}

				if action, err := r.step(step.chart); action != step.action || (err != nil) != step.fails {
					t.Fatalf("step %d: %s, %v", i, action, err)
				}
			}

			for _, name := range []string{"one", "two", "three"} {
				if got := r.of(name) != ""; got != (name == test.kept) {
					t.Errorf("%s: there %v", name, got)
				}
			}
		})
	}
}

// A retry of a failed install is an install, too, and removes what the attempt before it made of another chart.
func TestARetriedInstallOrphansNothing(t *testing.T) {
	r := newTried(t)
	r.wantError(ActionInstall, configMap("one")+notValid, "Not-Valid")

	r.unwritable = configMapPath("two")
	next := configMap("two") + hook("pre-install", "")
	r.wantError(ActionUpgrade, next, "may not be written")

	r.unwritable = ""
	r.want(ActionInstall, next)

	if r.of("one") != "" || r.of("two") != "demo" {
		t.Errorf("one is of %q, two of %q", r.of("one"), r.of("two"))
	}
}

// Only what the attempts made is removed.
func TestWhatFailedAttemptsDidNotMakeStays(t *testing.T) {
	r := newTried(t)
	r.settings.TakeOwnership = true
	r.want(ActionInstall, configMap("one")+configMap("policy")+"---\n"+strings.Replace(configMap("dropped"), "name: dropped", "name: dropped\n  annotations: {helm.sh/resource-policy: keep}", 1))
	r.want(ActionUpgrade, configMap("one")) // keeps "dropped" with the marks of the release
	r.makeOf("theirs", "")

	kept := strings.Replace(configMap("kept"), "name: kept", "name: kept\n  annotations: {helm.sh/resource-policy: keep}", 1)
	attempt := configMap("one") + configMap("theirs") + configMap("moved") + configMap("bare") + configMap("made") + configMap("dropped") + kept
	r.wantError(ActionUpgrade, attempt+notValid, "Not-Valid")
	r.remove(configMapPath("moved"))
	r.makeOf("moved", "another")
	r.remove(configMapPath("bare"))
	r.makeOf("bare", "")
	r.want(ActionUpgrade, configMap("one")+configMap("two"))

	for name, want := range map[string]string{"one": "demo", "two": "demo", "theirs": "demo", "dropped": "demo", "kept": "demo", "moved": "another", "bare": "somebody", "made": ""} {
		if got := r.of(name); got != want {
			t.Errorf("%s is of %q, want %q", name, got, want)
		}
	}

	told := strings.Join(r.notes, "; ")
	for _, name := range []string{"theirs", "moved", "bare"} {
		if !strings.Contains(told, "ConfigMap apps/"+name) {
			t.Errorf("%q does not name %s", told, name)
		}
	}
}

// What a later attempt took over was made after the first one began, and by somebody else.
func TestWhatALaterAttemptTookOverStays(t *testing.T) {
	r := newTried(t)
	r.settings.TakeOwnership = true
	r.want(ActionInstall, configMap("one"))
	r.wantError(ActionUpgrade, configMap("one")+configMap("two")+notValid, "Not-Valid")
	r.makeOf("theirs", "")
	r.wantError(ActionUpgrade, configMap("one")+configMap("theirs")+notValid, "Not-Valid")
	r.wantTheirsKept()
}

// So it is if nothing was ever in effect.
func TestWhatALaterInstallTookOverStays(t *testing.T) {
	r := newTried(t)
	r.settings.TakeOwnership = true
	r.wantError(ActionInstall, configMap("two")+notValid, "Not-Valid")
	r.makeOf("theirs", "")
	r.wantError(ActionUpgrade, configMap("two")+configMap("theirs")+notValid, "Not-Valid")
	r.wantTheirsKept()
}

// wantTheirsKept upgrades to what works. What somebody else made stays, and what the attempts made does not.
func (r *tried) wantTheirsKept() {
	r.t.Helper()

	r.want(ActionUpgrade, configMap("one"))
	r.wantNote("ObjectsKept", "ConfigMap apps/theirs", "took them over")

	if r.of("theirs") == "" || r.of("two") != "" {
		r.t.Errorf("theirs is of %q, two of %q", r.of("theirs"), r.of("two"))
	}
}

// Objects outside namespaces are no others.
func TestFailedAttemptsLeaveNothingOutsideNamespaces(t *testing.T) {
	const namespaces = "/api/v1/namespaces/"

	namespace := func(name string) string {
		return "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n"
	}

	r := newTried(t)
	r.want(ActionInstall, configMap("one"))
	r.put(namespaces+"theirs", map[string]any{"apiVersion": "v1", "kind": "Namespace"})
	r.settings.TakeOwnership = true
	r.wantError(ActionUpgrade, namespace("made")+strings.Replace(namespace("named"), "name: ", "namespace: some, name: ", 1)+namespace("theirs")+notValid, "Not-Valid")

	if r.get(namespaces+"made") == nil || r.get(namespaces+"named") == nil {
		t.Fatal("the attempt failed before it made anything")
	}

	r.want(ActionUpgrade, configMap("two"))

	r.wantNote("Namespace theirs")

	for name, want := range map[string]bool{"made": false, "named": false, "theirs": true} {
		if got := r.get(namespaces+name) != nil; got != want {
			t.Errorf("%s is there %v: %q", name, got, r.notes)
		}
	}
}

// Nothing is known of a kind that the cluster does not have any more, and nothing is left of it.
func TestFailedAttemptsWithAKindThatIsGone(t *testing.T) {
	r := newTried(t)
	r.want(ActionInstall, configMap("one"))
	r.wantError(ActionUpgrade, configMap("one")+"---\napiVersion: v1\nkind: Secret\nmetadata: {name: gone}\n"+configMap("two")+notValid, "Not-Valid")

	r.gone = "Secret"
	r.want(ActionUpgrade, configMap("three"))

	if r.of("two") != "" || r.of("three") != "demo" {
		t.Errorf("two is of %q, three of %q", r.of("two"), r.of("three"))
	}
}
