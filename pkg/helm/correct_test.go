package helm

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v4/pkg/release/common"
)

// The manifest of a revision is not forced over what a later one has made, or is making: a correction may have waited for room.
func TestOnlyTheLatestRevisionIsCorrected(t *testing.T) {
	next := strings.ReplaceAll(configMap("one"), "of: demo", "of: next")

	for name, change := range map[string]func(r *tried){
		"upgraded": func(r *tried) { r.want(ActionUpgrade, next) },
		"an upgrade by hand is under way": func(r *tried) {
			r.makeOf("one", "")
			r.add(r.t, applied(2, common.StatusPendingUpgrade, next, nil))
		},
		"an upgrade by hand begins while the record is read": func(r *tried) {
			var once sync.Once

			r.before = func(request *http.Request) {
				if request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, key("demo", 1)) {
					once.Do(func() {
						r.makeOf("one", "")
						r.add(r.t, applied(2, common.StatusPendingUpgrade, next, nil))
					})
				}
			}
		},
		"being uninstalled": func(r *tried) {
			r.remove(configMapPath("one"))
			r.leftUninstalling(1, "", 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTried(t)
			r.want(ActionInstall, configMap("one"))
			change(r)

			_, err := r.client.Correct(t.Context(), 1, nil)

			var failure *Error
			if !errors.As(err, &failure) || failure.Reason != ReasonInterrupted {
				t.Errorf("got %v", err)
			}

			if r.of("one") == "demo" {
				t.Error("the older manifest was applied")
			}

			if _, err := r.client.Drift(t.Context(), 1, nil); err != nil {
				t.Errorf("it cannot be compared, either: %v", err)
			}
		})
	}
}
