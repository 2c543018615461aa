package helm

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/release/common"

	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// oneName is an object with another name each time that the chart is rendered.
const oneName = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: named-{{ randAlphaNum 8 | lower }}\ndata: {of: demo}\n" +
	"---\napiVersion: v1\nkind: Service\nmetadata: {name: last}\n"

// stop stops an action, as the controller is stopped, when it writes the last object, which is refused then.
func (r *tried) stop(action Action, templates string) {
	r.t.Helper()

	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()

	r.unwritable = "/api/v1/namespaces/apps/services/last"
	r.before = func(request *http.Request) {
		if request.Method == http.MethodPatch && request.URL.Path == r.unwritable {
			cancel()
		}
	}

	chart := chartserver.Chart{Name: "demo", Version: "1.0.0", Files: map[string]string{"templates/all.yaml": templates}}

	got, err := r.stepUntil(ctx, chart)
	if got != action || err == nil || !strings.Contains(err.Error(), "interrupted") {
		r.t.Fatalf("%s: %v, want %s to be interrupted", got, err, action)
	}

	r.unwritable, r.before = "", func(*http.Request) {}
}

// paths are those of the ConfigMaps whose names were made when the chart was rendered.
func (r *tried) paths() []string {
	r.mu.Lock()
	defer r.mu.Unlock()

	var paths []string

	for path := range r.objects {
		if strings.HasPrefix(path, configMapPath("named-")) {
			paths = append(paths, path)
		}
	}

	return paths
}

// A revision that is made again removes what its interrupted attempt made under other names: its record knows of that no more.
func TestAResumedRevisionOrphansNothing(t *testing.T) {
	for name, before := range map[string]func(r *tried) Action{
		"install": func(*tried) Action { return ActionInstall },
		"upgrade": func(r *tried) Action {
			r.want(ActionInstall, configMap("one"))

			return ActionUpgrade
		},
		"upgrade after a failed one": func(r *tried) Action {
			r.want(ActionInstall, configMap("one"))
			r.wantError(ActionUpgrade, configMap("one")+configMap("two")+notValid, "Not-Valid")

			return ActionUpgrade
		},
		"upgrade after a failed install": func(r *tried) Action {
			r.wantError(ActionInstall, configMap("one")+notValid, "Not-Valid")

			return ActionUpgrade
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTried(t)
			action := before(r)
			r.makeOf("named-theirs", "another")
			r.stop(action, oneName)

			left := r.paths()
			if len(left) != 2 {
				t.Fatalf("the interrupted attempt left %v", left)
			}

			observed, err := r.client.Observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			number := observed.Latest().Number

			if got, err := r.step(oneName); err != nil {
				t.Fatalf("%s: %v", got, err)
			}

			if record := r.read(t, number); record.Info.Status != common.StatusDeployed {
				t.Errorf("revision %d is %s", number, record.Info.Status)
			}

			if got := r.paths(); len(got) != 2 || r.of("named-theirs") != "another" || r.of("one") != "" || r.of("two") != "" {
				t.Errorf("there are %v after %v, one is of %q, two of %q", got, left, r.of("one"), r.of("two"))
			}

			r.wanted.Absent = true
			r.want(ActionUninstall, oneName)

			if got := r.paths(); len(got) != 1 {
				t.Errorf("the uninstall left %v", got)
			}
		})
	}

	wantNothingHeld(t)
}
