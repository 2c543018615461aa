package helmlive

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

func wantReason(t *testing.T, err error, reason helm.Reason) {
	t.Helper()

	var failure *helm.Error
	if !errors.As(err, &failure) || failure.Reason != reason {
		t.Errorf("got %v, want reason %s", err, reason)
	}
}

func TestNoRights(t *testing.T) {
	config, err := cluster.RESTConfigFor("nobody", "nothing")
	if err != nil {
		t.Fatal(err)
	}

	r := newReleaseFor(t, config)
	_, err = r.client.Observe(t.Context())
	wantReason(t, err, helm.ReasonForbidden)

	err = r.client.Run(t.Context(), helm.Request{
		Decision: helm.Decision{Action: helm.ActionInstall}, Settings: r.settings, Chart: packed{chartserver.ConfigMapChart("demo", "1.0.0")},
	})
	wantReason(t, err, helm.ReasonForbidden)
}

func TestNoCluster(t *testing.T) {
	r := newReleaseFor(t, &rest.Config{Host: "https://127.0.0.1:1"})
	r.settings.Timeout = 20 * time.Second
	_, err := r.client.Observe(t.Context())
	wantReason(t, err, helm.ReasonUnreachable)

	err = r.client.Run(t.Context(), helm.Request{
		Decision: helm.Decision{Action: helm.ActionUninstall}, Settings: r.settings,
	})
	wantReason(t, err, helm.ReasonUnreachable)
}

func TestSecretValuesAreNotTold(t *testing.T) {
	r := newRelease(t)
	chart := chartserver.ConfigMapChart("demo", "1.0.0")
	chart.Files["values.schema.json"] = `{"properties":{"password":{"type":"string","pattern":"^[0-9]+$"}}}`
	chart.Files["templates/fail.yaml"] = `{{ if .Values.loud }}{{ fail (printf "bad password %s" .Values.password) }}{{ end }}`

	for _, name := range []string{"schema", "template"} {
		secret := values.Layer{From: "s", Text: []byte("password: canary-password"), Secret: true}

		merged, err := values.Merge(t.Context(), []values.Layer{secret, {From: "inline", Text: []byte("loud: true")}})
		if err != nil {
			t.Fatal(err)
		}

		if name == "template" {
			delete(chart.Files, "values.schema.json")
		}

		err = r.client.Run(t.Context(), helm.Request{
			Decision: helm.Decision{Action: helm.ActionInstall}, Settings: r.settings, Chart: packed{chart}, Values: merged,
		})
		wantReason(t, err, helm.ReasonFailed)

		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}

	if strings.Contains(r.logged.String(), "canary") {
		t.Errorf("the log holds a secret:\n%s", r.logged)
	}

	if got := r.numbers(); got != nil {
		t.Errorf("revisions were made: %v", got)
	}
}

// A record without Helm's labels is in the way and is not seen.
func TestARecordWithoutLabels(t *testing.T) {
	r := newRelease(t)

	if err := cluster.CreateNamespace(t.Context(), r.namespace); err != nil {
		t.Fatal(err)
	}

	record := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "sh.helm.release.v1.demo.v1"}}
	if _, err := cluster.Client().CoreV1().Secrets(r.namespace).Create(t.Context(), record, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	r.wantError(helm.ActionInstall, chartserver.ConfigMapChart("demo", "1.0.0"), "", helm.ReasonInterrupted, record.Name, "labels")
}

// A short history loses what was before the interrupted revision: Helm would count on from what is left.
func TestACrashAfterPruningMakesNoSecondRevision(t *testing.T) {
	r := newRelease(t)
	chart := func(version string) chartserver.Chart {
		return chartOf(version, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: demo}\ndata: {revision: '{{ .Release.Revision }}'}\n")
	}

	r.want(helm.ActionInstall, chart("1.0.0"), "")
	r.want(helm.ActionUpgrade, chart("2.0.0"), "")
	r.want(helm.ActionUpgrade, chart("3.0.0"), "")

	if err := cluster.Client().CoreV1().Secrets(r.namespace).Delete(t.Context(), "sh.helm.release.v1.demo.v2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	r.setStatus("v3", helm.StatusPendingUpgrade)
	r.setStatus("v1", helm.StatusDeployed)
	r.want(helm.ActionUpgrade, chart("3.0.0"), "")

	if diff := cmp.Diff([]string{"3 deployed", "1 superseded"}, r.numbers()); diff != "" {
		t.Error(diff)
	}

	if got := r.configMap("demo").Data["revision"]; got != "3" {
		t.Errorf("the chart was rendered for revision %s", got)
	}
}
