package promql

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// golden is the chart, rendered for the namespaces team-a and team-b; test/deploy keeps it.
const golden = "../deploy/testdata/golden/everything.yaml"

// rendered are the alerts that depend on the chart's values: those of the rendered PrometheusRule that are not in alerts.yaml.
func rendered(t *testing.T) map[string]alert {
	t.Helper()

	found := map[string]alert{}

	for decoder := yaml.NewDecoder(strings.NewReader(read(t, golden))); ; {
		var object struct {
			Kind string
			Spec struct {
				Groups []struct{ Rules []alert }
			}
		}

		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			t.Fatal(err)
		}

		if object.Kind != "PrometheusRule" {
			continue
		}

		for _, group := range object.Spec.Groups {
			for _, rule := range group.Rules {
				found[rule.Alert] = rule
			}
		}
	}

	maps.DeleteFunc(found, func(name string, _ alert) bool { _, fixed := alerts(t)[name]; return fixed })

	return found
}

// The alerts that depend on the chart's values fire when they should, and not a moment before. TestControllerDown has the
// one that is missing here.
func TestRenderedAlerts(t *testing.T) {
	cases := map[string]struct {
		bad, good []string      // series, from the epoch on, a minute apart
		after     time.Duration // when it fires
		says      string        // in its summary
	}{
		"OmniAPIServerDown": {
			bad:   []string{"", `up{job="omni-apiserver"} 0x200`},
			good:  []string{`up{job="omni-apiserver"} 1x200`},
			after: 5 * time.Minute, says: "No omni-apiserver answers",
		},
		// The values want one every 1h30m.
		"OmniSnapshotOld": {
			bad: []string{
				`omni_apiserver_etcd_snapshot_last_success_timestamp_seconds{job="omni-apiserver"} -10801x200`,
				`omni_apiserver_etcd_snapshot_last_success_timestamp_seconds{job="omni-apiserver"} -1700000000x200`, // 0, in our time
			},
			good: []string{
				`omni_apiserver_etcd_snapshot_last_success_timestamp_seconds{job="omni-apiserver"} 0x200`,
				// The first one is taken some minutes after the start.
				`omni_apiserver_etcd_snapshot_last_success_timestamp_seconds{job="omni-apiserver"} -1700000000x9 600x190`,
			},
			after: 15 * time.Minute, says: "is older than two intervals",
		},
	}

	all := rendered(t)
	delete(all, "OmniControllerDown")

	if got, want := slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(cases)); !slices.Equal(got, want) {
		t.Fatalf("alerts %v, tested are %v", got, want)
	}

	healthy, _ := recorded(t)
	exposed := healthy.exposed()

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			of := all[name]
			readsWhatIsExposed(t, of.Expr, exposed)

			if of.Labels["severity"] == "" || of.Annotations["description"] == "" {
				t.Errorf("it lacks a severity or a description: %v", of)
			}

			for _, bad := range test.bad {
				got := minutes(t, bad).at(of, test.after)
				if len(got) != 1 || !strings.Contains(got[0].annotations.Get("summary"), test.says) {
					t.Errorf("%s\nafter %s: %v, want one that says %q", bad, test.after, got, test.says)
				}

				if early := minutes(t, bad).at(of, test.after-time.Minute); len(early) > 0 {
					t.Errorf("%s\na minute before it fires already: %v", bad, early)
				}
			}

			for _, good := range test.good {
				if got := minutes(t, good).at(of, 3*time.Hour); len(got) > 0 {
					t.Errorf("%s\njust well enough: %v", good, got)
				}
			}
		})
	}
}

// minutes loads series whose samples are a minute apart.
func minutes(t *testing.T, series string) *prometheus {
	t.Helper()

	return load(t, "load 1m\n  "+strings.ReplaceAll(strings.TrimSpace(series), "\n", "\n  ")+"\n")
}
