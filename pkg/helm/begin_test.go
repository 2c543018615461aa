package helm

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"helm.sh/helm/v4/pkg/release/common"

	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// An action that may not begin changes nothing, whichever it is, and one that may is asked before its first change.
func TestAnActionIsAskedBeforeItChangesAnything(t *testing.T) {
	good, bad := configMap("one")+hook("pre-delete", ""), configMap("two")+notValid

	for name, test := range map[string]struct {
		prepare func(r *tried)
		chart   string
		want    Action
	}{
		"install":   {func(*tried) {}, good, ActionInstall},
		"upgrade":   {func(r *tried) { r.want(ActionInstall, good) }, configMap("two"), ActionUpgrade},
		"uninstall": {func(r *tried) { r.want(ActionInstall, good); r.wanted.Absent = true }, good, ActionUninstall},
		"test":      {func(r *tried) { r.want(ActionInstall, good+hook("test", "")); r.wanted.Test = true }, good + hook("test", ""), ActionTest},
		"rollback": {func(r *tried) {
			r.wanted.RollBack = true
			r.want(ActionInstall, good)
			r.wantError(ActionUpgrade, bad, "Not-Valid")
		}, bad, ActionRollback},
		"unlock": {func(r *tried) {
			r.want(ActionInstall, good)

			left := r.read(t, 1)
			left.Info.Status = common.StatusPendingUpgrade

			if err := r.records(t).Update(key("demo", 1), left); err != nil {
				t.Fatal(err)
			}
		}, configMap("two"), ActionUnlock},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTried(t)
			test.prepare(r)

			var asked, early, written atomic.Int32

			r.before = func(request *http.Request) {
				if request.Method == http.MethodGet {
					return
				}

				written.Add(1)

				if asked.Load() == 0 {
					early.Add(1)
				}
			}

			refused := &Error{Reason: ReasonInterrupted, Message: "taken back"}
			r.begin = func() error { asked.Add(1); return refused }

			if got, err := r.step(test.chart); got != test.want || !errors.Is(err, refused) || written.Load() > 0 {
				t.Fatalf("%s: %v, with %d writes", got, err, written.Load())
			}

			asked.Store(0)

			r.begin = func() error { asked.Add(1); return nil }

			if got, err := r.step(test.chart); got != test.want || err != nil || early.Load() > 0 || written.Load() == 0 {
				t.Fatalf("%s: %v, with %d writes, %d before it asked", got, err, written.Load(), early.Load())
			}
		})
	}
}

// CRDs are made before the chart is rendered.
func TestAnActionIsAskedBeforeItMakesCRDs(t *testing.T) {
	r := newTried(t)
	refused := &Error{Reason: ReasonInterrupted, Message: "taken back"}
	r.begin = func() error { return refused }

	_, err := r.stepWith(chartserver.Chart{Name: "demo", Version: "1.0.0", Files: map[string]string{
		"templates/all.yaml": configMap("one"), "crds/all.yaml": crd("first"),
	}})
	if !errors.Is(err, refused) || r.crdOf("first") != "" {
		t.Errorf("it ended with %v, first is of %q", err, r.crdOf("first"))
	}
}
