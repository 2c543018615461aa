package render_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render/worker"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
	"omni.texashpc.com/omni-cluster-operator/test/rendertest"
)

// TestMain makes the test program a worker when the pool starts it as one.
func TestMain(m *testing.M) {
	if worker.Asked(os.Args) {
		os.Exit(worker.Run(os.Args))
	}

	os.Exit(m.Run())
}

func newPool(t *testing.T, options render.Options) *render.Pool {
	t.Helper()

	pool := render.New(options)
	t.Cleanup(pool.Close)

	return pool
}

func jobOf(t *testing.T, values map[string]any) render.Job {
	t.Helper()

	text, err := render.EncodeValues(values)
	if err != nil {
		t.Fatal(err)
	}

	return render.Job{
		Values: text, Release: render.Release{Name: "demo", Namespace: "default", Revision: 1},
		Cluster: render.Cluster{Version: "v1.34.0", Major: "1", Minor: "34", APIVersions: []string{"v1", "apps/v1"}},
	}
}

func chartOf(template string) []byte {
	return chartserver.Chart{Name: "demo", Version: "1.0.0", Files: map[string]string{"templates/all.yaml": template}}.Pack()
}

func nothing(context.Context, render.Question) render.Reply { return render.Reply{} }

func (h hostile) pack() []byte {
	files := map[string]string{"templates/all.yaml": h.template}
	for name, text := range h.files {
		files[name] = text
	}

	return chartserver.Chart{Name: "demo", Version: "1.0.0", Files: files}.Pack()
}

type hostile struct {
	template string
	files    map[string]string
	words    string // of the refusal
}

// maxParent is what one chart may take from the heap of the process that has it rendered, in bytes. What it takes in a
// worker is bounded by the kernel: see TestAWorkerHasNothing.
const maxParent = 96 << 20

// Each of these took the process that rendered it with it, or filled its memory, or never ended.
func TestHostileCharts(t *testing.T) {
	aliases := "a: &a " + strings.Repeat("x", 40_000) + "\nb: [" + strings.Repeat("*a,", 20_000) + "]\n"

	program, err := rendertest.Program(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}

	pool := newPool(t, render.Options{Timeout: 5 * time.Minute, Program: program})

	for name, test := range map[string]hostile{
		"a dictionary that contains itself": {template: `{{ $a := dict }}{{ $_ := set $a "a" $a }}{{ $a }}`, words: "contains itself"},
		"recursive tpl":                     {template: `{{ tpl .Values.again . }}`, files: map[string]string{"values.yaml": "again: '{{ tpl .Values.again . }}'\n"}, words: ""}, // of memory, or of stack
		"one large text":                    {template: `{{ repeat 2000000000 "x" }}`, words: "takes more than 128 MiB"},
		"a text that doubles":               {template: `{{ $a := "x" }}{{ range until 40 }}{{ $a = print $a $a }}{{ end }}`, words: "takes more than 128 MiB"},
		"a list that grows":                 {template: `{{ $a := list }}{{ range until 100000 }}{{ $a = append $a (until 1000) }}{{ end }}`, words: "takes more than 128 MiB"},
		"much output":                       {template: `{{ range until 20 }}{{ repeat 1000000 "x" }}{{ end }}`, words: "print more than 16 MiB"},
		"aliases in values.yaml":            {files: map[string]string{"values.yaml": aliases}, words: "takes more than 128 MiB"},
		"aliases in Chart.yaml":             {files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\nx: {" + strings.ReplaceAll(aliases, "\n", ", ") + "}\n"}, words: "takes more than 128 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			packed, err := test.pack(), error(nil)

			foreigntest.WantAllocated(t, maxParent, func() {
				_, _, err = pool.Render(t.Context(), "group", jobOf(t, nil), packed, nothing)
			})

			var refusal *render.RefusedError
			if !errors.As(err, &refusal) || !strings.Contains(err.Error(), test.words) {
				t.Errorf("got %v, want a refusal that says %q", err, test.words)
			}

			// The next chart is rendered as if nothing had happened.
			if _, files, err := pool.Render(t.Context(), "group", jobOf(t, nil), chartOf("a: b"), nothing); err != nil || files["demo/templates/all.yaml"] != "a: b" {
				t.Errorf("%v, %v", files, err)
			}
		})
	}
}

// One large value ends a worker as many small ones do, whatever its size is, and before it fills the memory of the container.
func TestLargeValues(t *testing.T) {
	program, err := rendertest.Program(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}

	pool := newPool(t, render.Options{Timeout: 5 * time.Minute, Program: program})

	var before, after unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &before); err != nil {
		t.Fatal(err)
	}

	for range 3 {
		for _, millions := range []int{200, 300, 500, 800, 1500, 4000} {
			_, _, err := pool.Render(t.Context(), "group", jobOf(t, nil), chartOf(fmt.Sprintf(`{{ repeat %d000000 "a" | len }}`, millions)), nothing)

			var refusal *render.RefusedError
			if !errors.As(err, &refusal) || !strings.Contains(err.Error(), "takes more than 128 MiB of memory") {
				t.Errorf("%d million: %v", millions, err)
			}
		}

		// These may fit into what the steps of Go's heap leave.
		for _, millions := range []int{130, 150, 170} {
			_, _, err := pool.Render(t.Context(), "group", jobOf(t, nil), chartOf(fmt.Sprintf(`{{ repeat %d000000 "a" | len }}`, millions)), nothing)
			t.Logf("%d million: %v", millions, err)
		}
	}

	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &after); err != nil {
		t.Fatal(err)
	}

	// With what the program has in memory itself, its own file included.
	const most = 320 << 10

	if t.Logf("the largest child had %d MiB", after.Maxrss>>10); after.Maxrss > max(before.Maxrss, most) {
		t.Errorf("the largest child had %d MiB", after.Maxrss>>10)
	}
}

func TestEndlessTemplate(t *testing.T) {
	pool := newPool(t, render.Options{Workers: 1, Timeout: 500 * time.Millisecond})

	_, _, err := pool.Render(t.Context(), "group", jobOf(t, nil), chartOf(`{{ range $a := until 1000 }}{{ range $b := until 1000000 }}{{ end }}{{ end }}`), nothing)

	var refusal *render.RefusedError
	if !errors.As(err, &refusal) || !strings.Contains(err.Error(), "did not end within 500ms") {
		t.Errorf("got %v", err)
	}
}

func TestValuesKeepTheirTypes(t *testing.T) {
	values := map[string]any{
		"int": int64(7), "float": 1.0, "large": 1e21, "exact": json.Number("123456789012345678901234567890"), "text": "<a> & \"b\"",
		"list": []any{1.5, nil, true, int64(1)}, "map": map[string]any{"a": map[string]any{}},
	}

	encoded, err := render.EncodeValues(values)
	if err != nil {
		t.Fatal(err)
	}

	restored, err := render.DecodeValues(encoded)
	if err != nil || fmt.Sprintf("%#v", restored) != fmt.Sprintf("%#v", values) {
		t.Errorf("%#v became %#v, %v", values, restored, err)
	}
}

// What templates see is what they see in Helm, and what they print arrives as it is.
func TestText(t *testing.T) {
	template := strings.Join([]string{
		`{{ .Release.Name }} {{ .Release.Namespace }} {{ .Release.Revision }} {{ .Release.IsInstall }} {{ .Release.IsUpgrade }} {{ .Release.Service }}`,
		`{{ .Capabilities.KubeVersion }} {{ .Capabilities.APIVersions.Has "apps/v1" }} {{ .Capabilities.APIVersions.Has "x/v1" }}`,
		`{{ kindOf .Values.a }} {{ .Values.a }} {{ kindOf .Values.b }} {{ .Values.b }} {{ .Chart.Name }} {{ .Template.Name }}`,
		`{{ "{{ \"quoted\" }}" }} {{ "YWJj/w==" | b64dec }} ` + "\x60" + `{{ env "PATH" | default "no function" }}`,
	}, "\n")
	template = strings.Replace(template, `{{ env "PATH" | default "no function" }}`, "", 1)

	job := jobOf(t, map[string]any{"a": 1.0, "b": int64(2)})
	job.Release.Revision, job.Release.Upgrade = 3, true

	_, files, err := newPool(t, render.Options{}).Render(t.Context(), "group", job, chartOf(template), nothing)
	want := "demo default 3 false true Helm\nv1.34.0 true false\nfloat64 1 int64 2 demo demo/templates/all.yaml\n{{ \"quoted\" }} abc\xff \x60"

	if got := files["demo/templates/all.yaml"]; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestDependencies(t *testing.T) {
	packed := chartserver.Chart{Name: "demo", Version: "1.0.0", Files: map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\ndependencies:\n- {name: on, version: 1.0.0, alias: renamed, import-values: [shared]}\n" +
			"- {name: off, version: 1.0.0, condition: off.enabled}\n",
		"values.yaml":                   "off: {enabled: true}\n",
		"templates/all.yaml":            "{{ .Values.imported }}",
		"templates/_helpers.tpl":        "{{ define \"x\" }}x{{ end }}",
		"templates/empty.yaml":          "{{ if false }}x{{ end }}\n",
		"templates/NOTES.txt":           "notes",
		"crds/root.yaml":                "root",
		"charts/on/Chart.yaml":          "apiVersion: v2\nname: on\nversion: 1.0.0\n",
		"charts/on/values.yaml":         "exports: {shared: {imported: yes-it-is}}\n",
		"charts/on/templates/sub.yaml":  "sub {{ .Chart.Name }}",
		"charts/on/crds/sub.yaml":       "sub",
		"charts/off/Chart.yaml":         "apiVersion: v2\nname: off\nversion: 1.0.0\n",
		"charts/off/templates/off.yaml": "off",
		"charts/off/crds/off.yaml":      "off",
	}}.Pack()
	pool := newPool(t, render.Options{})
	job := jobOf(t, map[string]any{"off": map[string]any{"enabled": false}})

	answer, files, err := pool.Render(t.Context(), "group", job, packed, nothing)
	if err != nil {
		t.Fatal(err)
	}

	want := map[string]string{
		"demo/templates/all.yaml": "yes-it-is", "demo/templates/NOTES.txt": "notes", "demo/charts/renamed/templates/sub.yaml": "sub renamed",
	}
	if fmt.Sprint(files) != fmt.Sprint(want) || !answer.Rendered || answer.CRDs != nil {
		t.Errorf("%v, %+v", files, answer)
	}

	if record := answer.Chart; len(record.Metadata.Dependencies) != 1 || record.Values["imported"] != "yes-it-is" || len(record.Templates) != 4 {
		t.Errorf("the record has %+v, %v, %d templates", record.Metadata.Dependencies, record.Values, len(record.Templates))
	}

	job.CRDsFirst = true

	answer, files, err = pool.Render(t.Context(), "group", job, packed, nothing)
	if err != nil || len(files) > 0 || answer.Rendered {
		t.Fatalf("%v, %+v, %v", files, answer, err)
	}

	var names []string
	for _, crd := range answer.CRDs {
		names = append(names, crd.Name+"="+string(crd.Data))
	}

	if slices.Sort(names); fmt.Sprint(names) != "[crds/root.yaml=root crds/sub.yaml=sub]" {
		t.Errorf("CRDs %v", names)
	}
}

func TestFailures(t *testing.T) {
	pool := newPool(t, render.Options{})

	for name, test := range map[string]struct {
		packed []byte
		stage  render.Stage
		words  string
	}{
		"no archive":  {[]byte("words"), render.StageUnpack, "EOF"},
		"no chart":    {chartserver.Chart{Name: "demo", Files: map[string]string{"Chart.yaml": "version: 1.0.0\n"}}.Pack(), render.StageLoad, "name"},
		"a failure":   {chartOf(`{{ fail "it does not fit" }}`), render.StageRender, "demo/templates/all.yaml:1:3): it does not fit"},
		"no template": {chartOf(`{{ if }}`), render.StageRender, "missing value for if"},
		"a version": {hostile{files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\nkubeVersion: \"<1.0.0\"\n"}}.pack(), render.StageRender,
			"chart requires kubeVersion: <1.0.0 which is incompatible with Kubernetes v1.34.0"},
		"a schema": {hostile{files: map[string]string{"values.schema.json": `{"required":["a"]}`}}.pack(), render.StageRender, "values don't meet the specifications"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := pool.Render(t.Context(), "group", jobOf(t, nil), test.packed, nothing)

			var failure *render.Failure
			if !errors.As(err, &failure) || failure.Stage != test.stage || !strings.Contains(failure.Text, test.words) {
				t.Errorf("got %v, want %s: %s", err, test.stage, test.words)
			}
		})
	}
}

func TestLookup(t *testing.T) {
	var asked []render.Question

	lookup := func(_ context.Context, question render.Question) render.Reply {
		asked = append(asked, question)

		switch question.Name {
		case "":
			return render.Reply{Object: []byte(`{"apiVersion":"v1","kind":"SecretList","items":[{"metadata":{"name":"a"},"n":1}]}`)}
		case "large":
			return render.Reply{Object: make([]byte, render.MaxReply+1)}
		case "missing":
			return render.Reply{}
		default:
			return render.Reply{Error: "may not look"}
		}
	}

	pool := newPool(t, render.Options{})
	template := `{{ range (lookup "v1" "Secret" "ns" "").items }}{{ .kind }} {{ .metadata.name }} {{ kindOf .n }}{{ end }} {{ lookup "v1" "Secret" "ns" "missing" }}`

	_, files, err := pool.Render(t.Context(), "group", jobOf(t, nil), chartOf(template), lookup)
	if got := files["demo/templates/all.yaml"]; err != nil || got != "Secret a int64 map[]" {
		t.Errorf("got %q, %v", got, err)
	}

	if len(asked) != 2 || asked[1] != (render.Question{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "missing"}) {
		t.Errorf("asked %+v", asked)
	}

	for name, words := range map[string]string{"large": "more than 4 MiB", "refused": "may not look"} {
		_, _, err = pool.Render(t.Context(), "group", jobOf(t, nil), chartOf(`{{ lookup "v1" "Secret" "ns" "`+name+`" }}`), lookup)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
