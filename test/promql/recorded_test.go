package promql

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/util/teststorage"
)

const (
	chart = "../../artifacts/chart/omni-cluster-operator"
	// recordedStep is the time between two samples of the recording, which begins at the epoch.
	recordedStep = 30 * time.Second
)

// rare are metrics that are not in the recording, with their labels: no demonstration exposes them, Prometheus makes them
// itself, or nothing asked for them when it was recorded.
var rare = map[string][]string{
	"omni_api_throttled_seconds_total": {"connection"},
	"up":                               {},
	"omni_kubeconfig_renewal_timestamp_seconds":                   {"namespace", "name", "pod"},
	"omni_service_account_renewal_timestamp_seconds":              {"namespace", "name", "pod"},
	"omni_helm_drifted":                                           {"namespace", "name", "pod"},
	"omni_rollout_next_open_timestamp_seconds":                    {"namespace", "policy", "stage", "pod"},
	"omni_apiserver_etcd_snapshot_last_success_timestamp_seconds": {},
}

// prometheus is the engine, and samples that it reads.
type prometheus struct {
	t      *testing.T
	engine *promql.Engine
	data   *teststorage.TestStorage
}

func load(t *testing.T, samples string) *prometheus {
	t.Helper()

	return &prometheus{t: t, engine: promqltest.NewTestEngine(t, false, 0, 1_000_000), data: promqltest.LoadedStorage(t, samples)}
}

func read(t *testing.T, path ...string) string {
	t.Helper()

	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

// recorded is what the programs exposed, and for how long.
func recorded(t *testing.T) (p *prometheus, lasts time.Duration) {
	t.Helper()

	text := read(t, "testdata", "recorded.txt")

	samples := 0
	for line := range strings.Lines(text) {
		if _, values, found := strings.Cut(line, "} "); found {
			samples = max(samples, len(strings.Fields(values)))
		}
	}

	if samples < 10 {
		t.Fatalf("the recording has %d samples", samples)
	}

	return load(t, text), time.Duration(samples-1) * recordedStep
}

// over evaluates an expression at every step.
func (p *prometheus) over(expression string, lasts time.Duration) promql.Matrix {
	p.t.Helper()

	query, err := p.engine.NewRangeQuery(p.t.Context(), p.data, nil, expression, time.Unix(0, 0), time.Unix(0, 0).Add(lasts), recordedStep)
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	defer query.Close()

	result := query.Exec(p.t.Context())

	matrix, err := result.Matrix()
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}

	// Its points belong to the query.
	copied := make(promql.Matrix, len(matrix))
	for i, series := range matrix {
		copied[i] = promql.Series{Metric: series.Metric, Floats: append([]promql.FPoint(nil), series.Floats...)}
	}

	return copied
}

// exposed are the labels of every metric of the recording.
func (p *prometheus) exposed() map[string]map[string]bool {
	p.t.Helper()

	querier, err := p.data.Querier(0, int64(time.Hour/time.Millisecond))
	if err != nil {
		p.t.Fatal(err)
	}
	defer querier.Close()

	found := map[string]map[string]bool{}

	all := querier.Select(context.Background(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, labels.MetricName, ".+"))
	for all.Next() {
		set := all.At().Labels()
		name := set.Get(labels.MetricName)

		if found[name] == nil {
			found[name] = map[string]bool{}
		}

		set.Range(func(label labels.Label) { found[name][label.Name] = true })
	}

	for name, of := range rare {
		found[name] = map[string]bool{labels.MetricName: true, "job": true}
		for _, label := range of {
			found[name][label] = true
		}
	}

	return found
}

// selectors are the metrics and labels that an expression reads.
func selectors(t *testing.T, expression string) []*parser.VectorSelector {
	t.Helper()

	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}

	var found []*parser.VectorSelector

	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			found = append(found, selector)
		}

		return nil
	})

	return found
}

// readsWhatIsExposed checks that an expression names no metric and no label that neither program has.
func readsWhatIsExposed(t *testing.T, expression string, exposed map[string]map[string]bool) {
	t.Helper()

	for _, selector := range selectors(t, expression) {
		if exposed[selector.Name] == nil {
			t.Errorf("%s: neither program exposes %s", expression, selector.Name)

			continue
		}

		for _, matcher := range selector.LabelMatchers {
			if !exposed[selector.Name][matcher.Name] {
				t.Errorf("%s: %s has no label %s", expression, selector.Name, matcher.Name)
			}
		}
	}
}
