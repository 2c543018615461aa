package helm

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"helm.sh/helm/v4/pkg/release/common"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// A server that refuses a change quotes the object as it was. What came from a Secret then, and is another value by
// now, is told nowhere: neither of the revision in effect nor of a later one that failed on the way.
func TestOldValuesOfARefusedChangeAreNotTold(t *testing.T) {
	pool := render.New(render.Options{})
	t.Cleanup(pool.Close)

	const first, second, third, today = "opensesame", "hunter2hunter2", "correcthorse", "batterystaple"

	for action, revision := range map[Action]int{ActionUpgrade: 0, ActionRollback: 1} {
		t.Run(string(action), func(t *testing.T) {
			cluster := newFakeCluster(t)
			cluster.add(t, applied(1, common.StatusSuperseded, object("a"), map[string]any{"password": first}))
			cluster.add(t, applied(2, common.StatusDeployed, object("a"), map[string]any{"password": second}))
			cluster.add(t, applied(3, common.StatusFailed, object("a"), map[string]any{"password": third}))
			cluster.configMaps = func(to http.ResponseWriter, request *http.Request) {
				if request.Method == http.MethodGet {
					_, _ = fmt.Fprint(to, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"apps"}}`)

					return
				}

				refuse(to, apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", field.ErrorList{
					field.Forbidden(field.NewPath("data"), fmt.Sprintln("may not change:", first, second, third, today)),
				}))
			}

			merged, err := values.Merge(t.Context(), []values.Layer{{From: "s", Text: []byte("password: " + today), Secret: true}})
			if err != nil {
				t.Fatal(err)
			}

			var logged strings.Builder

			log := funcr.New(func(_, line string) { logged.WriteString(line + "\n") }, funcr.Options{Verbosity: 9})
			c := New(Target{Config: cluster.config(), Name: "demo", Namespace: "apps", Renderers: pool}, log, time.Second)

			err = c.Run(t.Context(), Request{
				Decision: Decision{Action: action, Revision: revision}, Settings: Settings{Timeout: time.Minute}, Values: merged,
				Observed: &Observed{Revisions: []Revision{{Number: 3, Status: StatusFailed}, {Number: 2, Status: StatusDeployed}, {Number: 1, Status: StatusSuperseded}}},
				Chart:    packed{chartserver.Chart{Name: "demo", Version: "1.0.0", Files: map[string]string{"templates/all.yaml": object("a")}}},
			})
			if err == nil || !strings.Contains(err.Error(), "may not change") {
				t.Fatalf("got %v", err)
			}

			for where, text := range map[string]string{"the error": err.Error(), "the log": logged.String(), "the record": cluster.read(t, 4).Info.Description} {
				for _, value := range []string{second, third, today} {
					if strings.Contains(text, value) {
						t.Errorf("%s shows %s: %s", where, value, text)
					}
				}
			}
		})
	}
}
