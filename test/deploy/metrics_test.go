package deploy

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// rare are metrics without a series until something special happens; docs/reference/metrics.md lists them.
func rare() map[string]string {
	return map[string]string{
		"omni_helm_actions_total":                           "a Helm action",
		"omni_api_throttled_seconds_total":                  "a call that waits",
		"omni_helm_drifted":                                 "a release with driftDetection",
		"omni_service_account_expiration_timestamp_seconds": "a key that Omni lets expire",
		"omni_service_account_renewal_timestamp_seconds":    "a key that Omni lets expire",
		"omni_kubeconfig_renewal_timestamp_seconds":         "a kubeconfig that was exported",
		"omni_rollout_clusters":                             "an OmniRolloutPolicy",
		"omni_rollout_stopped":                              "an OmniRolloutPolicy",
		"omni_rollout_oldest_held_timestamp_seconds":        "changes that wait in an OmniRolloutPolicy",
		"omni_rollout_next_open_timestamp_seconds":          "a stage that is closed",
	}
}

// metricName finds what an expression reads. Functions and keywords of PromQL are followed by a bracket or have no
// underscore; label names stand inside braces or after by.
var (
	insideBraces = regexp.MustCompile(`\{[^}]*\}`)
	grouping     = regexp.MustCompile(`\b(by|without|on|ignoring)\s*\([^)]*\)`)
	metricName   = regexp.MustCompile(`\b[a-z]+_[a-z0-9_]+\b(\s*\()?`)
)

// metricsIn returns the metrics that an expression reads.
func metricsIn(expression string) []string {
	expression = grouping.ReplaceAllString(insideBraces.ReplaceAllString(expression, ""), "")

	var names []string

	for _, match := range metricName.FindAllString(expression, -1) {
		if !strings.HasSuffix(match, "(") {
			names = append(names, match)
		}
	}

	return names
}

func TestMetricsIn(t *testing.T) {
	for expression, want := range map[string][]string{
		`sum by (kind_of) (omni_resource_info{ready!="True"})`:                        {"omni_resource_info"},
		`histogram_quantile(0.99, sum by (le) (rate(omni_x_bucket{a_b="c"}[5m])))`:    {"omni_x_bucket"},
		`sum(rate(apiserver_a_total[5m])) / sum(rate(apiserver_b_total[5m])) > 0.05`:  {"apiserver_a_total", "apiserver_b_total"},
		`(omni_service_account_expiration_timestamp_seconds - time()) / 86400 < 24*7`: {"omni_service_account_expiration_timestamp_seconds"},
	} {
		if got := metricsIn(expression); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", expression, got, want)
		}
	}
}

// expressions returns every expression of the dashboards and alerts, with where it is.
func expressions(t *testing.T, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()

	found := map[string]string{}
	boards := find(t, objects, "ConfigMap", "omni-cluster-operator-dashboards")

	data, _, err := unstructured.NestedStringMap(boards.Object, "data")
	if err != nil || len(data) != 2 {
		t.Fatalf("dashboards: %v, %d files", err, len(data))
	}

	for name, content := range data {
		var board struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal([]byte(content), &board); err != nil {
			t.Fatalf("%s: %v", name, err)
		}

		for _, panel := range board.Panels {
			for i, target := range panel.Targets {
				found[fmt.Sprintf("%s, %s, %d", name, panel.Title, i)] = target.Expr
			}
		}
	}

	groups, _, _ := unstructured.NestedSlice(find(t, objects, "PrometheusRule", "omni-cluster-operator").Object, "spec", "groups")
	for _, group := range groups {
		rules, _, _ := unstructured.NestedSlice(group.(map[string]any), "rules")
		for _, rule := range rules {
			found["alert "+text(t, rule.(map[string]any), "alert")] = text(t, rule.(map[string]any), "expr")
		}
	}

	return found
}

// checkMetrics reads the metrics as the rendered ServiceMonitors say, and looks for each one that a dashboard or an
// alert needs.
func checkMetrics(t *testing.T, r *running) {
	t.Helper()

	exposed := scrapeMonitored(t, r, "omni-apiserver", r.apiserver.Port(8443))
	for _, controller := range r.controllers {
		exposed += scrapeMonitored(t, r, "omni-controller", controller.Port(8080))
	}

	url := fmt.Sprintf("https://127.0.0.1:%d/apis/omni.texashpc.com/v1alpha1/omniconnections", r.apiserver.Port(8443))
	client, token := reader(t, r, "omni-apiserver")

	if got := status(t, client, url, token); got != http.StatusForbidden {
		t.Errorf("the reader of metrics gets %d for objects", got)
	}

	names := map[string]bool{"up": true}
	for _, line := range strings.Split(exposed, "\n") {
		name, _, _ := strings.Cut(line, "{")
		name, _, _ = strings.Cut(name, " ")
		names[name] = true
	}

	documented := read(t, filepath.Join(root, "docs/reference/metrics.md"))

	// The page names the pages that have those of omni-apiserver.
	all := documented
	for _, page := range []string{"docs/how-to/backup.md", "docs/how-to/high-availability.md", "docs/concepts/limits.md"} {
		all += read(t, filepath.Join(root, page))
	}

	for _, name := range slices.Sorted(maps.Keys(names)) {
		name = regexp.MustCompile("_(bucket|sum|count)$").ReplaceAllString(name, "")
		if strings.HasPrefix(name, "omni_") && !strings.Contains(all, "`"+name) {
			t.Errorf("no page says what %s is", name)
		}
	}

	wanted := expressions(t, r.objects)
	for _, place := range slices.Sorted(maps.Keys(wanted)) {
		for _, name := range metricsIn(wanted[place]) {
			if names[name] {
				continue
			}

			if rare()[name] == "" || !strings.Contains(documented, "`"+name+"{") {
				t.Errorf("%s reads %s, which nothing exposes", place, name)
			}
		}
	}
}

// reader is who reads the metrics of a program, with the token, the authority and the name that its ServiceMonitor says.
func reader(t *testing.T, r *running, monitor string) (client *http.Client, token string) {
	t.Helper()

	endpoint := endpointOf(t, r, monitor)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(r.secrets[text(t, endpoint, "tlsConfig", "ca", "secret", "name")][text(t, endpoint, "tlsConfig", "ca", "secret", "key")]))

	client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: text(t, endpoint, "tlsConfig", "serverName")},
	}}

	secret, err := r.hub.Client().CoreV1().Secrets(namespace).Get(t.Context(), text(t, endpoint, "authorization", "credentials", "name"), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if token = string(secret.Data[text(t, endpoint, "authorization", "credentials", "key")]); token == "" {
		t.Fatal("Kubernetes did not fill the Secret of the reader")
	}

	return client, token
}

// endpointOf is the one endpoint of a ServiceMonitor.
func endpointOf(t *testing.T, r *running, monitor string) map[string]any {
	t.Helper()

	endpoints, _, err := unstructured.NestedSlice(find(t, r.objects, "ServiceMonitor", monitor).Object, "spec", "endpoints")
	if err != nil || len(endpoints) != 1 {
		t.Fatalf("endpoints of %s: %v, %v", monitor, endpoints, err)
	}

	return endpoints[0].(map[string]any)
}

// scrapeMonitored reads a program's metrics as its ServiceMonitor says, and sees that nobody else reads them: neither
// without a token, nor with one that has no such right.
func scrapeMonitored(t *testing.T, r *running, monitor string, port int) string {
	t.Helper()

	client, token := reader(t, r, monitor)
	endpoint := endpointOf(t, r, monitor)
	url := fmt.Sprintf("%s://127.0.0.1:%d%s", text(t, endpoint, "scheme"), port, text(t, endpoint, "path"))

	if got := status(t, client, url, ""); got != http.StatusUnauthorized {
		t.Errorf("%s: without a token the metrics answer %d", monitor, got)
	}

	if got := status(t, client, url, accountToken(t, r.hub, "default")); got != http.StatusForbidden {
		t.Errorf("%s: to somebody without the right the metrics answer %d", monitor, got)
	}

	if got := status(t, client, url, "invented"); got == http.StatusOK {
		t.Errorf("%s: anybody with a token reads the metrics", monitor)
	}

	return scrape(t, client, url, token)
}

func scrape(t *testing.T, client *http.Client, url, token string) string {
	t.Helper()

	code, body := get(t, client, url, token)
	if code != http.StatusOK {
		t.Fatalf("%s answers %d: %s", url, code, body)
	}

	return body
}

func status(t *testing.T, client *http.Client, url, token string) int {
	t.Helper()

	code, _ := get(t, client, url, token)

	return code
}

func get(t *testing.T, client *http.Client, url, token string) (int, string) {
	t.Helper()

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}

	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}

	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}

	return response.StatusCode, string(body)
}
