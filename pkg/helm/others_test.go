package helm

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// tried is a release in a cluster that is none.
type tried struct {
	*fakeCluster

	t        *testing.T
	client   *Client
	settings Settings
	wanted   Wanted
	notes    []string
	begin    func() error
}

func newTried(t *testing.T) *tried {
	t.Helper()

	pool := render.New(render.Options{})
	t.Cleanup(pool.Close)

	cluster := newFakeCluster(t)
	cluster.put("/api/v1/namespaces/apps", map[string]any{"apiVersion": "v1", "kind": "Namespace"})

	return &tried{
		fakeCluster: cluster, t: t,
		client: New(Target{Config: cluster.config(), Name: "demo", Namespace: "apps", Renderers: pool}, logr.Discard(), time.Second),
		// Nothing is waited for: a fake has no controllers.
		settings: Settings{Timeout: await.Limit, MaxHistory: 10}, wanted: Wanted{Owner: "uid-1", Retries: 1},
	}
}

// step does what is next for a chart of these templates.
func (r *tried) step(templates string) (Action, error) {
	r.t.Helper()

	return r.stepWith(chartserver.Chart{Name: "demo", Version: "1.0.0", Files: map[string]string{"templates/all.yaml": templates}})
}

func (r *tried) stepWith(chart chartserver.Chart) (Action, error) {
	r.t.Helper()

	return r.stepUntil(r.t.Context(), chart)
}

// stepUntil does it until the end of a context.
func (r *tried) stepUntil(ctx context.Context, chart chartserver.Chart) (Action, error) {
	r.t.Helper()

	observed, err := r.client.Observe(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}

	wanted := r.wanted
	wanted.Content = Digest(string(chart.Pack()))
	wanted.Attempt = wanted.Content
	decision := Decide(wanted, observed, time.Now())

	ctx, cancel := context.WithTimeout(ctx, await.Limit)
	defer cancel()

	return decision.Action, r.client.Run(ctx, Request{
		Decision: decision, Wanted: wanted, Settings: r.settings, Observed: &observed, Chart: packed{chart}, Begin: r.begin,
		Note: func(note Note, text string) { r.notes = append(r.notes, string(note)+": "+text) },
	})
}

// want fails unless the next step is the given one and succeeds.
func (r *tried) want(action Action, templates string) {
	r.t.Helper()

	if got, err := r.step(templates); got != action || err != nil {
		r.t.Fatalf("%s: %v, want %s", got, err, action)
	}
}

// wantError fails unless the next step is the given one and fails with these words.
func (r *tried) wantError(action Action, templates string, words ...string) {
	r.t.Helper()

	got, err := r.step(templates)

	var failure *Error
	if got != action || !errors.As(err, &failure) || failure.Reason != ReasonFailed {
		r.t.Fatalf("%s: %v, want %s to fail", got, err, action)
	}

	for _, word := range words {
		if !strings.Contains(failure.Message, word) {
			r.t.Errorf("%q does not say %q", failure.Message, word)
		}
	}
}

// wantNote fails unless the last note has all of these words.
func (r *tried) wantNote(words ...string) {
	r.t.Helper()

	for _, word := range words {
		if len(r.notes) == 0 || !strings.Contains(r.notes[len(r.notes)-1], word) {
			r.t.Errorf("the notes are %q, and the last does not say %q", r.notes, word)
		}
	}
}

func configMapPath(name string) string { return "/api/v1/namespaces/apps/configmaps/" + name }

// of says whose a ConfigMap is, by its data; empty if there is none.
func (r *tried) of(name string) string {
	found := r.get(configMapPath(name))
	if found == nil {
		return ""
	}

	data, _ := found.Object["data"].(map[string]any)
	of, _ := data["of"].(string)

	return of
}

// makeOf makes a ConfigMap of another release, or without marks if that has no name.
func (r *tried) makeOf(name, another string) {
	made := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"of": "somebody"}, "metadata": map[string]any{"namespace": "apps"}}

	if another != "" {
		made["data"] = map[string]any{"of": another}
		made["metadata"] = map[string]any{
			"namespace": "apps", "labels": map[string]any{"app.kubernetes.io/managed-by": "Helm"},
			"annotations": map[string]any{"meta.helm.sh/release-name": another, "meta.helm.sh/release-namespace": "apps"},
		}
	}

	r.put(configMapPath(name), made)
}

func configMap(name string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata: {of: demo}\n"
}

// notValid is an object that the server refuses, after the ConfigMaps were applied and before anything is removed.
const notValid = "---\napiVersion: v1\nkind: Service\nmetadata: {name: Not-Valid}\n"

// Two releases never take turns with an object that both charts name.
func TestAnUpgradeDoesNotTakeWhatAnotherReleaseHas(t *testing.T) {
	r := newTried(t)
	r.want(ActionInstall, configMap("moved")+configMap("one"))
	r.remove(configMapPath("moved"))
	r.makeOf("moved", "another")

	next := configMap("moved") + configMap("one") + configMap("two")
	r.wantError(ActionUpgrade, next, "ConfigMap apps/moved belongs to Helm release apps/another", "takeOwnership")

	if r.of("moved") != "another" || r.of("two") != "" {
		t.Errorf("moved is of %q, two of %q", r.of("moved"), r.of("two"))
	}

	r.settings.TakeOwnership = true
	r.want(ActionUpgrade, next)

	if r.of("moved") != "demo" || r.of("two") != "demo" {
		t.Errorf("with takeOwnership moved is of %q, two of %q", r.of("moved"), r.of("two"))
	}
}

// What a failed upgrade has dropped, and somebody made since, is not written over by the rollback, nor by what comes next.
func TestARollbackDoesNotTakeWhatOthersMade(t *testing.T) {
	for name, test := range map[string]struct{ another, says string }{
		"another release": {"another", "ConfigMap apps/dropped belongs to Helm release apps/another"},
		"a user":          {"", "ConfigMap apps/dropped exists and bears no marks"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTried(t)
			r.wanted.RollBack = true

			first, next := configMap("one")+configMap("dropped"), strings.ReplaceAll(configMap("one"), "demo", "next")+notValid
			r.want(ActionInstall, first)
			r.wantError(ActionUpgrade, next, "Not-Valid")
			r.remove(configMapPath("dropped")) // what an upgrade that waits has done
			r.makeOf("dropped", test.another)

			theirs := r.of("dropped")
			uid := r.get(configMapPath("dropped")).GetUID()

			r.wantError(ActionRollback, next, "no object was changed", test.says)

			if got := r.get(configMapPath("dropped")); r.of("dropped") != theirs || got.GetUID() != uid || r.of("one") != "next" {
				t.Errorf("one is of %q, dropped of %q", r.of("one"), r.of("dropped"))
			}

			r.remove(configMapPath("dropped"))
			r.want(ActionRollback, next)

			if r.of("dropped") != "demo" || r.of("one") != "demo" {
				t.Errorf("one is of %q, dropped of %q", r.of("one"), r.of("dropped"))
			}
		})
	}
}

// A chart may give an object a namespace that has none.
func TestARollbackDoesNotTakeWhatIsOutsideNamespaces(t *testing.T) {
	const path = "/api/v1/namespaces/dropped"

	r := newTried(t)
	r.wanted.RollBack = true
	r.want(ActionInstall, configMap("one")+"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: dropped, namespace: some}\n")
	r.wantError(ActionUpgrade, configMap("one")+notValid, "Not-Valid")
	r.remove(path)
	r.put(path, map[string]any{"apiVersion": "v1", "kind": "Namespace"})
	r.wantError(ActionRollback, configMap("one")+notValid, "Namespace dropped exists")

	if got := r.get(path).GetAnnotations(); len(got) > 0 {
		t.Errorf("it bears %v", got)
	}
}

// An object that lost its marks while it was the release's is its own again.
func TestARollbackTakesBackWhatLostItsMarks(t *testing.T) {
	r := newTried(t)
	r.wanted.RollBack = true
	r.want(ActionInstall, configMap("one"))

	bare := r.get(configMapPath("one")).DeepCopy()
	bare.SetAnnotations(nil)
	r.put(configMapPath("one"), bare.Object)

	next := strings.ReplaceAll(configMap("one"), "demo", "next") + notValid
	r.wantError(ActionUpgrade, next, "Not-Valid")
	r.want(ActionRollback, next)

	if r.of("one") != "demo" {
		t.Errorf("the object is of %q", r.of("one"))
	}
}

// Others may be quicker than a hook.
func TestARollbackLooksAgainBeforeItWrites(t *testing.T) {
	r := newTried(t)
	r.wanted.RollBack = true

	next := configMap("one") + notValid
	hook := "---\napiVersion: v1\nkind: Secret\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-rollback}}\n"
	r.want(ActionInstall, configMap("one")+configMap("dropped")+hook)
	r.wantError(ActionUpgrade, next, "Not-Valid")
	r.remove(configMapPath("dropped"))

	r.before = func(request *http.Request) {
		if strings.HasSuffix(request.URL.Path, "/secrets/hook") && request.Method == http.MethodPatch {
			r.makeOf("dropped", "another")
		}
	}

	r.wantError(ActionRollback, next, "ConfigMap apps/dropped belongs to Helm release apps/another")

	if r.of("dropped") != "another" || r.of("one") != "demo" {
		t.Errorf("dropped is of %q, one of %q", r.of("dropped"), r.of("one"))
	}
}
