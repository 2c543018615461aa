package helm

import (
	"net/http"
	"testing"

	"helm.sh/helm/v4/pkg/release/common"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failSecondRead refuses the second read of a ConfigMap from now on, after it did something else: that of Helm, before it
// removes the object.
func (r *tried) failSecondRead(name string, meanwhile func()) {
	reads := 0

	r.before = func(request *http.Request) {
		if request.Method != http.MethodGet || request.URL.Path != configMapPath(name) {
			return
		}

		hidden := ""
		if reads++; reads == 2 {
			hidden = configMapPath(name)
			meanwhile()
		}

		r.mu.Lock()
		defer r.mu.Unlock()

		r.hidden = hidden
	}
}

// Helm goes on if it cannot read what it is to remove. The revision fails then, so that the next one removes the object: no
// record would name it otherwise.
func TestWhatCouldNotBeReadIsRemovedLater(t *testing.T) {
	one, dropped := configMap("one"), configMap("dropped")

	for name, test := range map[string]struct {
		prepare func(r *tried)
		action  Action
		chart   string
	}{
		"upgrade": {func(r *tried) { r.want(ActionInstall, one+dropped) }, ActionUpgrade, one},
		"upgrade after a failed one": {func(r *tried) {
			r.want(ActionInstall, one)
			r.wantError(ActionUpgrade, one+dropped+notValid, "Not-Valid")
		}, ActionUpgrade, one},
		"rollback": {func(r *tried) {
			r.wanted.RollBack = true
			r.want(ActionInstall, one)
			r.wantError(ActionUpgrade, one+dropped+notValid, "Not-Valid")
		}, ActionRollback, one + dropped + notValid},
		"install": {func(r *tried) {
			r.wantError(ActionInstall, dropped+notValid, "Not-Valid")
			r.unwritable = configMapPath("one")
			r.wantError(ActionUpgrade, one, "may not be written")
			r.unwritable = ""
		}, ActionInstall, one},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTried(t)
			r.wanted.Retries = 2
			test.prepare(r)

			if r.of("dropped") != "demo" {
				t.Fatal("there is nothing to remove")
			}

			r.failSecondRead("dropped", func() {})
			r.wantError(test.action, test.chart, "ConfigMap apps/dropped", "not in the chart any more")

			r.before = func(*http.Request) {}
			r.want(test.action, test.chart)

			if r.of("one") != "demo" || r.of("dropped") != "" {
				t.Errorf("one is of %q, dropped of %q", r.of("one"), r.of("dropped"))
			}
		})
	}
}

// What is there for another reason is no failure.
func TestWhatWasNotRemovedAndMayStay(t *testing.T) {
	for name, change := range map[string]func(r *tried){
		"it is gone":       func(r *tried) { r.remove(configMapPath("dropped")) },
		"it is somebody's": func(r *tried) { r.remove(configMapPath("dropped")); r.makeOf("dropped", "") },
		"the chart keeps it": func(r *tried) {
			kept := r.get(configMapPath("dropped")).DeepCopy()
			annotations := kept.GetAnnotations()
			annotations["helm.sh/resource-policy"] = "keep"
			kept.SetAnnotations(annotations)
			r.put(configMapPath("dropped"), kept.Object)
		},
		"it is being deleted": func(r *tried) {
			going, now := r.get(configMapPath("dropped")).DeepCopy(), metav1.Now()
			going.SetDeletionTimestamp(&now)
			r.put(configMapPath("dropped"), going.Object)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTried(t)
			r.want(ActionInstall, configMap("one")+configMap("dropped"))
			r.failSecondRead("dropped", func() { change(r) })
			r.want(ActionUpgrade, configMap("one"))

			if status := r.read(t, 2).Info.Status; status != common.StatusDeployed {
				t.Errorf("revision 2 is %s", status)
			}
		})
	}
}
