package deploy

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestNames: which names the values give.
func TestNames(t *testing.T) {
	long := strings.Repeat("l", 40)

	for _, tc := range []struct{ release, values, prefix, fullname string }{
		{"any", ``, "omni", "omni-cluster-operator"},
		{"any", `fullnameOverride: hub-a`, "hub-a", "hub-a"},
		{"any", `{fullnameOverride: hub-a, nameOverride: other}`, "hub-a", "hub-a"},
		{"any", `nameOverride: operator`, "any-operator", "any-operator"},
		{"my-operator-1", `nameOverride: operator`, "my-operator-1", "my-operator-1"},
		{"any", `fullnameOverride: ` + long, long, long},
		{strings.Repeat("r", 39), `nameOverride: "n"`, strings.Repeat("r", 39), strings.Repeat("r", 39)},
		{strings.Repeat("r", 50) + "n", `nameOverride: "n"`, strings.Repeat("r", 40), strings.Repeat("r", 40)},
	} {
		files, err := renderAs(tc.release, namespace, merged(t, tc.values, `monitoring: {dashboards: {enabled: true}}`))
		if err != nil {
			t.Fatal(err)
		}

		objects := decode(t, stream(installed(files)))
		for kind, name := range map[string]string{
			"StatefulSet": tc.prefix + "-apiserver", "Deployment": tc.prefix + "-controller", "Service": tc.prefix + "-controller-metrics",
			"ClusterRole": tc.fullname + "-view", "ConfigMap": tc.fullname + "-dashboards", "APIService": "v1alpha1.omni.texashpc.com",
		} {
			find(t, objects, kind, name)
		}
	}

	for _, wrong := range []string{"fullnameOverride: Upper", "fullnameOverride: 1st", "nameOverride: ends-", "fullnameOverride: " + long + "l"} {
		if _, err := render(wrong); err == nil || !strings.Contains(err.Error(), "Override") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// TestOtherPrefix: with other names everything is as it was but for the names: whatever refers to an object follows, and
// nothing else does, neither selectors nor files nor the lease.
func TestOtherPrefix(t *testing.T) {
	const override = "fullnameOverride: hub-a"

	for set, values := range valueSets(t) {
		before, after := decode(t, stream(mustRender(t, values))), decode(t, stream(mustRender(t, merged(t, values, override))))
		names := map[string]string{}

		for _, object := range before {
			if now := renamed(object.GetName()); now != object.GetName() {
				names[object.GetName()] = now
			}
		}

		// Those that cert-manager makes, and what Services are called in certificates.
		for _, name := range []string{"omni-apiserver-ca", "omni-apiserver-tls", "omni-controller-metrics-tls"} {
			names[name] = renamed(name)
		}

		want := slices.Collect(maps.Values(names))

		for _, object := range after {
			if name := object.GetName(); name != "v1alpha1.omni.texashpc.com" && !slices.Contains(want, name) {
				t.Errorf("%s: %s is there", set, identity(object))
			}

			object.SetLabels(nil)
			checkReferences(t, set+" "+identity(object), names, object.Object)
		}

		if len(before) != len(after) {
			t.Errorf("%s: %d objects became %d", set, len(before), len(after))
		}

		if problems := inconsistencies(t, mustRender(t, merged(t, values, override))); len(problems) > 0 {
			t.Errorf("%s:\n%s", set, strings.Join(problems, "\n"))
		}
	}
}

// renamed is what an object is called with the prefix hub-a.
func renamed(name string) string {
	if rest, ok := strings.CutPrefix(name, "omni-cluster-operator"); ok {
		return "hub-a" + rest
	}

	if rest, ok := strings.CutPrefix(name, "omni-"); ok {
		return "hub-a-" + rest
	}

	return name
}

// checkReferences looks for names of before. Some texts are no names of objects: containers and their programs, the lease,
// and what selectors look for.
func checkReferences(t *testing.T, path string, names map[string]string, value any) {
	t.Helper()

	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if slices.Contains([]string{"matchLabels", "matchExpressions", "selector", "labels", "annotations", "containers", "resourceNames", "groups"}, key) {
				continue
			}

			checkReferences(t, path+"."+key, names, inner)
		}
	case []any:
		for _, inner := range value {
			checkReferences(t, path+"[]", names, inner)
		}
	case string:
		first, _, _ := strings.Cut(value, "."+namespace)
		if names[first] != "" {
			t.Errorf("%s is %q", path, value)
		}
	}
}

// TestJobOfOtherNames: alerts and dashboards find the metrics of omni-apiserver whatever its Service is called.
func TestJobOfOtherNames(t *testing.T) {
	for values, want := range map[string]string{"{}": "", "fullnameOverride: hub-a": "app.kubernetes.io/name"} {
		objects := decode(t, stream(mustRender(t, merged(t, valueSets(t)["everything"], values))))

		for _, object := range objects {
			if object.GetKind() != "ServiceMonitor" {
				continue
			}

			if got, _, _ := unstructured.NestedString(object.Object, "spec", "jobLabel"); got != want {
				t.Errorf("%s: %s takes the job from %q, want %q", values, identity(object), got, want)
			}
		}

		checkJobsOfAlerts(t, values, objects)
	}
}

// checkJobsOfAlerts: what the alerts ask for is a job of a ServiceMonitor, as the Prometheus operator names it. Those that
// tell that a job is away would fire for ever otherwise.
func checkJobsOfAlerts(t *testing.T, values string, objects []*unstructured.Unstructured) {
	t.Helper()

	var (
		jobs []string
		rule *unstructured.Unstructured
	)

	for _, object := range objects {
		if object.GetKind() == "PrometheusRule" {
			rule = object
		}

		if object.GetKind() != "ServiceMonitor" {
			continue
		}

		selector, _, _ := unstructured.NestedStringMap(object.Object, "spec", "selector", "matchLabels")
		label, _, _ := unstructured.NestedString(object.Object, "spec", "jobLabel")

		for _, service := range objects {
			if service.GetKind() != "Service" || service.GetLabels()["app.kubernetes.io/name"] != selector["app.kubernetes.io/name"] {
				continue
			}

			if label == "" {
				jobs = append(jobs, service.GetName())
			} else {
				jobs = append(jobs, service.GetLabels()[label])
			}
		}
	}

	for _, alert := range []string{"OmniAPIServerDown", "OmniControllerDown"} {
		asked := regexp.MustCompile(`job=~?"([^"]*)"`).FindStringSubmatch(expressionOf(t, rule, alert))
		if asked == nil || !slices.ContainsFunc(jobs, regexp.MustCompile("^(?:"+asked[1]+")$").MatchString) {
			t.Errorf("%s: %s asks for the job %q, there are %q", values, alert, asked, jobs)
		}
	}
}
