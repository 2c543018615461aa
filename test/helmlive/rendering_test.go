package helmlive

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// What a chart does to the process that renders it makes no revision, and the next chart is installed.
func TestHostileCharts(t *testing.T) {
	r := newRelease(t)
	pool := render.New(render.Options{Timeout: time.Second})
	t.Cleanup(pool.Close)

	patient := r.client
	impatient := helm.New(helm.Target{Config: cluster.RESTConfig(), Name: "demo", Namespace: r.namespace, Renderers: pool}, logr.Discard(), time.Second)

	for _, test := range []struct {
		name, template, words string
		client                *helm.Client
	}{
		{"a dictionary that contains itself", `{{ $a := dict }}{{ $_ := set $a "a" $a }}{{ $a }}`, "without end", patient},
		{"much memory", `{{ repeat 2000000000 "x" }}`, "more than 128 MiB of memory", patient},
		{"no end", `{{ range $a := until 1000 }}{{ range $b := until 1000000 }}{{ end }}{{ end }}`, "did not end within 1s", impatient},
		{"much text", `{{ range until 20 }}{{ repeat 1000000 "x" }}{{ end }}`, "print more than 16 MiB", patient},
		{"aliases", "a: &a " + strings.Repeat("x", 30_000) + "\nb: [" + strings.Repeat("*a,", 20_000) + "]\n", "aliases", patient},
	} {
		t.Run(test.name, func(*testing.T) {
			r.client = test.client
			r.wantError(helm.ActionInstall, chartOf("1.0.0", test.template), "", helm.ReasonRefused, "chart demo 1.0.0", test.words)
		})
	}

	r.client = patient
	r.want(helm.ActionInstall, chartserver.ConfigMapChart("demo", "1.0.1"), "")
}

// What is random is made once: the record, the cluster and the hook have the same text. A lookup asks the cluster once,
// and gets what Helm's own gives.
func TestNothingIsRenderedTwice(t *testing.T) {
	var c requests

	r := newReleaseFor(t, c.counted(cluster.RESTConfig()))

	if err := cluster.CreateNamespace(t.Context(), r.namespace); err != nil {
		t.Fatal(err)
	}

	there := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "there"}, Data: map[string]string{"word": "found"}}
	if _, err := cluster.Client().CoreV1().ConfigMaps(r.namespace).Create(t.Context(), there, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	chart := func(version string) chartserver.Chart {
		return chartOf(version, `apiVersion: v1
kind: ConfigMap
metadata: {name: made, annotations: {number: "{{ .Release.Revision }}", upgrade: "{{ .Release.IsUpgrade }}"}}
data:
  random: {{ randAlphaNum 30 }}
  now: "{{ now | unixEpoch }}"
  word: "{{ (lookup "v1" "ConfigMap" .Release.Namespace "there").data.word }}"
  none: "{{ lookup "v1" "ConfigMap" .Release.Namespace "missing" }}"
  all: "{{ range (lookup "v1" "ConfigMap" .Release.Namespace "").items }}{{ .kind }}/{{ .metadata.name }} {{ end }}"
`)
	}

	for i, version := range []string{"1.0.0", "1.0.1"} {
		action := []helm.Action{helm.ActionInstall, helm.ActionUpgrade}[i]
		c.take()
		r.want(action, chart(version), "")

		_, _, asked := c.take()
		looked := slices.DeleteFunc(asked, func(request string) bool { return !strings.HasSuffix(request, "/configmaps/there") })

		if len(looked) != 1 {
			t.Errorf("%s: looked up %d times", action, len(looked))
		}

		made := r.configMap("made")
		if made.Data["word"] != "found" || made.Data["none"] != "map[]" || !strings.Contains(made.Data["all"], "ConfigMap/there ") || len(made.Data["random"]) != 30 {
			t.Errorf("%s: %v", action, made.Data)
		}

		if want := []string{"1 false", "2 true"}[i]; made.Annotations["number"]+" "+made.Annotations["upgrade"] != want {
			t.Errorf("%s: %v, want %s", action, made.Annotations, want)
		}

		// What is recorded is what is in the cluster.
		if found, err := r.client.Drift(t.Context(), i+1, nil); err != nil || len(found) > 0 {
			t.Errorf("%s: the record differs: %v, %v", action, found, err)
		}
	}
}
