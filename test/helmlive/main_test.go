package helmlive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render/worker"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/rendertest"
)

// cluster is the workload cluster of all tests; each has a namespace of its own.
var cluster *env.Hub

// renderers are the workers of all tests.
var renderers *render.Pool

func TestMain(m *testing.M) {
	if worker.Asked(os.Args) {
		os.Exit(worker.Run(os.Args))
	}

	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()

	var err error
	if cluster, err = env.StartHub(ctx, env.Options{Progress: os.Stderr}); err != nil {
		return 0, err
	}

	directory, err := os.MkdirTemp("", "live")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(directory)

	program, err := rendertest.Program(directory)
	if err != nil {
		return 0, err
	}

	renderers = render.New(render.Options{Program: program})
	defer renderers.Close()

	return m.Run(), cluster.Stop()
}

// release is one release under test.
type release struct {
	t         *testing.T
	client    *helm.Client
	namespace string
	settings  helm.Settings
	wanted    helm.Wanted
	logged    *logBuffer
	notes     []string
}

// newRelease makes a release called "demo" in a namespace of the test's own.
func newRelease(t *testing.T) *release {
	t.Helper()

	return newReleaseFor(t, cluster.RESTConfig())
}

func newReleaseFor(t *testing.T, config *rest.Config) *release {
	t.Helper()

	namespace := strings.ToLower(strings.NewReplacer("_", "-", "/", "-").Replace(t.Name()))
	namespace = strings.TrimRight(namespace[:min(len(namespace), 60)], "-")

	logged := &logBuffer{}
	log := funcr.New(func(prefix, args string) { logged.write(prefix + args) }, funcr.Options{Verbosity: 10})

	return &release{
		t: t, namespace: namespace, logged: logged,
		client:   helm.New(helm.Target{Config: config, Name: "demo", Namespace: namespace, Renderers: renderers}, log, 5*time.Second),
		settings: helm.Settings{Timeout: await.Limit, CreateNamespace: true, MaxHistory: 10},
		wanted:   helm.Wanted{Owner: "uid-1", Retries: 1},
	}
}

type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) write(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.WriteString(line + "\n")
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.text.String()
}

// packed is a chart that nobody has refused.
type packed struct{ chartserver.Chart }

// String implements helm.Chart.
func (p packed) String() string { return p.Name + " " + p.Version }

// Archive implements helm.Chart.
func (p packed) Archive(context.Context) ([]byte, error) { return p.Pack(), nil }

// Accept implements helm.Chart.
func (packed) Accept(*chart.Metadata) error { return nil }

// Invalid implements helm.Chart.
func (packed) Invalid(why string) error { return errors.New(why) }

func (r *release) observe() helm.Observed {
	r.t.Helper()

	observed, err := r.client.Observe(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}

	return observed
}

// decide says what is next for a chart and values.
func (r *release) decide(packed chartserver.Chart, inline string) (helm.Decision, helm.Request) {
	r.t.Helper()

	merged, err := values.Merge(r.t.Context(), []values.Layer{{From: "inline", Text: []byte(inline)}})
	if err != nil {
		r.t.Fatal(err)
	}

	wanted := r.wanted
	wanted.Content = helm.Digest(chartserver.Digest(packed.Pack()), merged.Digest())
	wanted.Attempt = helm.Digest(wanted.Content, fmt.Sprint(r.settings))
	observed := r.observe()
	decision := helm.Decide(wanted, observed, time.Now())

	return decision, helm.Request{Decision: decision, Wanted: wanted, Settings: r.settings, Values: merged, Observed: &observed}
}

// step does what is next, and returns what it was.
func (r *release) step(ctx context.Context, chart chartserver.Chart, values string) (helm.Action, error) {
	r.t.Helper()

	decision, request := r.decide(chart, values)
	if decision.Action == helm.ActionNone || decision.Action == helm.ActionWait || decision.Action == helm.ActionStall {
		return decision.Action, nil
	}

	request.Chart = packed{chart}
	request.Note = func(note helm.Note, text string) { r.notes = append(r.notes, string(note)+": "+text) }

	return decision.Action, r.client.Run(ctx, request)
}

// want fails unless the next step is the given one and succeeds.
func (r *release) want(action helm.Action, packed chartserver.Chart, values string) {
	r.t.Helper()

	got, err := r.step(r.t.Context(), packed, values)
	if got != action || err != nil {
		r.t.Fatalf("%s: %v, want %s", got, err, action)
	}
}

// wantError fails unless the next step is the given one and fails for the reason.
func (r *release) wantError(action helm.Action, packed chartserver.Chart, values string, reason helm.Reason, words ...string) {
	r.t.Helper()

	got, err := r.step(r.t.Context(), packed, values)

	var failure *helm.Error
	if got != action || !errors.As(err, &failure) || failure.Reason != reason {
		r.t.Fatalf("%s: %v, want %s to fail as %s", got, err, action, reason)
	}

	for _, word := range words {
		if !strings.Contains(failure.Message, word) {
			r.t.Errorf("%q does not say %q", failure.Message, word)
		}
	}
}

// numbers are "number status" of all revisions, the newest first.
func (r *release) numbers() []string {
	r.t.Helper()

	var numbers []string
	for _, revision := range r.observe().Revisions {
		numbers = append(numbers, fmt.Sprintf("%d %s", revision.Number, revision.Status))
	}

	return numbers
}

func (r *release) configMap(name string) *corev1.ConfigMap {
	r.t.Helper()

	found, err := cluster.Client().CoreV1().ConfigMaps(r.namespace).Get(r.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}

	return found
}

// chartOf is a chart of one template.
func chartOf(version, template string) chartserver.Chart {
	return chartserver.Chart{Name: "demo", Version: version, Files: map[string]string{"templates/all.yaml": template}}
}
