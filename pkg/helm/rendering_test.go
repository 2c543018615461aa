package helm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render/worker"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// TestMain makes the test program a worker when a pool starts it as one.
func TestMain(m *testing.M) {
	if worker.Asked(os.Args) {
		os.Exit(worker.Run(os.Args))
	}

	os.Exit(m.Run())
}

// packed is a chart that nobody has refused.
type packed struct{ chartserver.Chart }

// String implements Chart.
func (p packed) String() string { return p.Name + " " + p.Version }

// Archive implements Chart.
func (p packed) Archive(context.Context) ([]byte, error) { return p.Pack(), nil }

// Accept implements Chart.
func (packed) Accept(*chart.Metadata) error { return nil }

// Invalid implements Chart.
func (packed) Invalid(why string) error { return errors.New(why) }

// dryRun is the release that Helm makes of a chart, without a cluster.
func dryRun(t *testing.T, config *action.Configuration, ch *chart.Chart, values map[string]any) *releasev1.Release {
	t.Helper()

	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.DryRunStrategy = "demo", "apps", action.DryRunClient

	made, err := install.Run(ch, values)
	if err != nil {
		t.Fatal(err)
	}

	return made.(*releasev1.Release)
}

func anyChart() chartserver.Chart {
	return chartserver.Chart{Name: "demo", Version: "1.2.3", Files: map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.2.3\nappVersion: \"7\"\nkubeVersion: \">=1.0.0-0\"\n" +
			"dependencies:\n- {name: sub, version: 1.0.0, alias: first, import-values: [{child: a, parent: b}]}\n- {name: sub, version: 1.0.0, alias: second, tags: [off]}\n",
		"values.yaml":                    "tags: {off: false}\nlist: [1, 2.50, 1e30]\ntext: \"<&>\"\n",
		"values.schema.json":             `{"type":"object"}`,
		"README.md":                      "words",
		"templates/_helpers.tpl":         `{{ define "labels" }}a: b{{ end }}`,
		"templates/NOTES.txt":            "{{ .Release.Name }} is there <no value>",
		"templates/b.yaml":               "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n  labels: {{ include \"labels\" . | nindent 4 }}\ndata:\n  odd: \"{{ `{{ .Values }}` }} \\\" \\\\ `\"\n{{ range .Values.list }}# {{ . }}\n{{ end }}",
		"templates/a.yaml":               "---apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\n\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n",
		"templates/hook.yaml":            "apiVersion: v1\nkind: Pod\nmetadata: {name: h, annotations: {helm.sh/hook: \"pre-install,test\", helm.sh/hook-weight: \"5\", helm.sh/hook-delete-policy: hook-succeeded}}\n",
		"templates/deep/c.yaml":          "{{ if .Values.b }}kind: Namespace\napiVersion: v1\nmetadata: {name: {{ .Values.b.x }}}{{ end }}",
		"templates/empty.yaml":           "{{ if false }}x{{ end }}\n",
		"charts/sub/Chart.yaml":          "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
		"charts/sub/values.yaml":         "a: {x: imported}\n",
		"charts/sub/templates/s.yaml":    "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: {{ .Chart.Name }}-{{ .Values.global.g }}}\n",
		"charts/sub/templates/NOTES.txt": "of the subchart",
	}}
}

// What Helm makes of the stand-in is, to the byte, what it makes of the chart; so is what is recorded.
func TestTheStandInPrintsTheSame(t *testing.T) {
	values := map[string]any{"global": map[string]any{"g": int64(1)}, "list": []any{1.0, int64(2)}}
	packed := anyChart().Pack()

	loaded, err := loader.LoadArchive(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}

	want := dryRun(t, action.NewConfiguration(), loaded, values)

	pool := render.New(render.Options{})
	t.Cleanup(pool.Close)

	encoded, err := render.EncodeValues(values)
	if err != nil {
		t.Fatal(err)
	}

	cluster := common.DefaultCapabilities

	answer, files, err := pool.Render(t.Context(), "", render.Job{
		Values: encoded, Release: render.Release{Name: "demo", Namespace: "apps", Revision: 1},
		Cluster: render.Cluster{Version: cluster.KubeVersion.Version, Major: cluster.KubeVersion.Major, Minor: cluster.KubeVersion.Minor, APIVersions: cluster.APIVersions},
	}, packed, nil)
	if err != nil {
		t.Fatal(err)
	}

	config := action.NewConfiguration()
	prerendered, functions := prerenderedChart(answer.Chart, files)
	config.CustomTemplateFuncs = functions
	got := dryRun(t, config, prerendered, values)

	if diff := cmp.Diff(want.Manifest, got.Manifest); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff(want.Hooks, got.Hooks); diff != "" {
		t.Error(diff)
	}

	if want.Info.Notes != got.Info.Notes || want.Info.Notes != "demo is there " {
		t.Errorf("notes %q, want %q", got.Info.Notes, want.Info.Notes)
	}

	for name, pair := range map[string][2]any{"chart": {want.Chart, answer.Chart}, "config": {want.Config, got.Config}} {
		before, err := json.Marshal(pair[0])
		if err != nil {
			t.Fatal(err)
		}

		after, err := json.Marshal(pair[1])
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: %v\nwant %s\ngot  %s", name, err, before, after)
		}
	}
}

// The record gets the chart, whoever writes it.
func TestTheChartItselfIsRecorded(t *testing.T) {
	_, wrapped, _ := newStorage(t, 0)
	wrapped.prerendered, wrapped.original = &chart.Chart{}, &chart.Chart{Metadata: &chart.Metadata{Name: "real"}}

	made := record(1, releasecommon.StatusPendingInstall)
	made.Chart = wrapped.prerendered

	if err := wrapped.Create(key("demo", 1), made); err != nil || made.Chart != wrapped.original {
		t.Errorf("%v, %+v", err, made.Chart)
	}

	made.Chart = wrapped.prerendered
	if err := wrapped.Update(key("demo", 1), made); err != nil || made.Chart != wrapped.original {
		t.Errorf("%v, %+v", err, made.Chart)
	}
}

// What a chart prints is bounded before this process parses it.
func TestManifestsAreBounded(t *testing.T) {
	foreigntest.Sequential(t)

	pool := render.New(render.Options{})
	t.Cleanup(pool.Close)

	c := &Client{target: Target{Renderers: pool}}
	request := Request{Chart: packed{chartserver.Chart{Name: "demo", Version: "1.0.0"}}}
	aliases := "a: &a " + strings.Repeat("x", 30_000) + "\nb: [" + strings.Repeat("*a,", 20_000) + "]\n"
	half := "x: [" + strings.Repeat("a,", 200_000) + "]\n"

	for name, test := range map[string]struct {
		files  map[string]string
		reason Reason // empty: it is taken
		words  []string
	}{
		"small":         {files: map[string]string{"demo/templates/a.yaml": "---a: b\n---\nc: d", "demo/templates/NOTES.txt": "{"}},
		"aliases":       {map[string]string{"demo/templates/a.yaml": aliases}, ReasonRefused, []string{"demo/templates/a.yaml", "aliases"}},
		"many values":   {map[string]string{"demo/templates/a.yaml": half + "---\n" + half + "---" + half}, ReasonRefused, []string{"demo 1.0.0", "a.yaml", "more than 500000 values"}},
		"many together": {map[string]string{"demo/templates/a.yaml": half, "demo/templates/b.yaml": half, "demo/templates/c.yaml": half}, ReasonRefused, []string{"all of 3 files"}},
		"what is cut":   {map[string]string{"demo/templates/a.yaml": "a: &<no value>a x"}, ReasonRefused, []string{"<no value>"}},
		"no YAML":       {map[string]string{"demo/templates/a.yaml": "a: b\nc: [d\n"}, ReasonFailed, []string{"YAML parse error on demo/templates/a.yaml", "line 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			var err error

			foreigntest.WantAllocated(t, 400<<20, func() { err = c.checkManifests(t.Context(), request, test.files, checkOutput(t.Context(), test.files)) })

			if test.reason == "" && err == nil {
				return
			}

			failure := classify("install", err, nil)

			var known *Error
			if !errors.As(failure, &known) || known.Reason != test.reason {
				t.Fatalf("got %v, want %s", err, test.reason)
			}

			for _, word := range test.words {
				if !strings.Contains(failure.Error(), word) {
					t.Errorf("%v does not say %q", failure, word)
				}
			}
		})
	}
}

func TestErrorsOfRendering(t *testing.T) {
	one := packed{chartserver.Chart{Name: "demo", Version: "1.0.0"}}

	for _, test := range []struct {
		err    error
		reason Reason
		want   string
	}{
		{&render.RefusedError{Why: "it is too much"}, ReasonRefused, "chart demo 1.0.0: it is too much"},
		{fmt.Errorf("%w: no process", render.ErrUnavailable), ReasonUnavailable, "chart demo 1.0.0: charts cannot be rendered now: no process"},
		{&render.Failure{Stage: render.StageRender, Text: "it does not fit"}, ReasonFailed, "install: it does not fit"},
		{context.DeadlineExceeded, ReasonTimeout, "install: chart demo 1.0.0: context deadline exceeded"},
	} {
		err := classify("install", explainRendering(one, test.err), nil)

		var known *Error
		if !errors.As(err, &known) || known.Reason != test.reason || err.Error() != test.want {
			t.Errorf("got %v, want %s: %s", err, test.reason, test.want)
		}
	}

	var unusable *unusableError
	if err := explainRendering(one, &render.Failure{Stage: render.StageLoad, Text: "no name"}); !errors.As(err, &unusable) || unusable.cause.Error() != "cannot be read: no name" {
		t.Errorf("got %v", err)
	}
}

// A chart chooses the names of its subcharts, and how many there are: the log has one line of a bounded length.
func TestUncheckedChartsAreNamedBriefly(t *testing.T) {
	if got, want := brief([]string{"a", "b\x1b[2J\nc"}), "a, b [2J c"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	many := make([]string, 1000)
	for i := range many {
		many[i] = strings.Repeat("long ", 1000) + strconv.Itoa(i)
	}

	if got := brief(many); len(got) > 2<<10 || !strings.HasSuffix(got, ", and 990 more") {
		t.Errorf("got %d bytes: %s", len(got), got)
	}

	if got, want := brief(many[:11]), ", and 1 more"; !strings.HasSuffix(got, want) {
		t.Errorf("%q does not end with %q", got, want)
	}
}

// gone is a chart whose archive cannot be had any more.
type gone struct{ packed }

var errGone = errors.New("the repository does not answer")

// Archive implements Chart.
func (gone) Archive(context.Context) ([]byte, error) { return nil, errGone }

// What is said of an archive that is gone is what its source says.
func TestAnArchiveThatIsGone(t *testing.T) {
	c := New(Target{Config: newFakeCluster(t).config(), Name: "demo", Namespace: "apps", Renderers: render.New(render.Options{})}, logr.Discard(), time.Second)

	err := c.Run(t.Context(), Request{Decision: Decision{Action: ActionInstall}, Observed: &Observed{}, Chart: gone{}, Settings: Settings{Timeout: time.Minute}})
	if !errors.Is(err, errGone) {
		t.Errorf("got %v", err)
	}

	wantNothingHeld(t)
}
