package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// releasing is a delivery with a chart repository that has a chart named demo:
// one ConfigMap, named like the release, with the values of .data.
type releasing struct {
	*delivery

	charts *chartserver.Repository
}

func newReleasing(t *testing.T) *releasing {
	t.Helper()

	return releasingIn(newDelivery(t))
}

func releasingIn(d *delivery) *releasing {
	d.t.Helper()

	r := &releasing{delivery: d, charts: chartserver.StartRepository()}
	d.t.Cleanup(r.charts.Close)
	r.charts.Add(chartserver.ConfigMapChart("demo", "1.0.0"))

	return r
}

// release has extra lines: of spec.chart indented by four, of spec by two.
func (r *releasing) release(extra ...string) string { return r.releaseOf("app", "1.0.0", extra...) }

func (r *releasing) releaseOf(name, version string, extra ...string) string {
	return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniHelmRelease
metadata:
  name: %s
spec:
  clusterRef: {name: demo}
  kubeconfigSecretRef: {name: demo-kubeconfig}
  namespace: %s
  chart:
    repository: %s
    chart: demo
    version: %s
%s`, name, r.apps, r.charts.URL(), version, strings.Join(extra, "\n"))
}

func (r *releasing) status(name string) v1alpha1.OmniHelmReleaseStatus {
	r.t.Helper()

	return get[v1alpha1.OmniHelmRelease](r.space, "ohr", name).Status
}

// records are "number status" of Helm's records in the workload cluster, the oldest first.
func (r *releasing) records(name string) []string {
	r.t.Helper()

	list, err := r.hub.Client().CoreV1().Secrets(r.apps).List(r.t.Context(), metav1.ListOptions{LabelSelector: "owner=helm,name=" + name})
	if err != nil {
		r.t.Fatal(err)
	}

	var found []string
	for i := range list.Items {
		found = append(found, list.Items[i].Labels["version"]+" "+list.Items[i].Labels["status"])
	}

	return found
}

func (r *releasing) wantRecords(name string, want ...string) {
	r.t.Helper()

	if diff := cmp.Diff(want, r.records(name)); diff != "" {
		r.t.Errorf("Helm's records: %s", diff)
	}
}

// waitData waits until the data of the release's ConfigMap is this; nil for none.
func (r *releasing) waitData(name string, want map[string]string) {
	r.t.Helper()
	r.wait("ConfigMap "+name, func() error {
		found, err := r.hub.Client().CoreV1().ConfigMaps(r.apps).Get(r.t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			found = &corev1.ConfigMap{}
		} else if err != nil {
			return err
		}

		if diff := cmp.Diff(want, found.Data); diff != "" {
			return errors.New(diff)
		}

		return nil
	})
}

// A release is installed, follows its values and their Secret, is left alone when nothing changes, and is uninstalled.
func TestHelmRelease(t *testing.T) {
	t.Parallel()

	r := newReleasing(t)
	r.apply(r.release())
	r.ready("ohr", "app")
	r.waitData("app", map[string]string{"chart": "1.0.0", "greeting": "hello"})
	r.wantRecords("app", "1 deployed")

	status := r.status("app")
	if status.Chart != "demo" || status.ChartVersion != "1.0.0" || status.AppVersion != "app-1.0.0" || status.Revision != 1 || status.ReleaseStatus != "deployed" ||
		status.LastAction != "install" || status.Failures != 0 || status.ClusterID == "" || len(status.History) != 1 || status.ReleaseName != "app" || status.Namespace != r.apps {
		t.Errorf("status: %+v", status)
	}

	// A second run does nothing, and downloads nothing.
	r.handled("ohr", "app", "again")
	r.wantRecords("app", "1 deployed")

	if got := r.charts.Downloads(); got != 1 {
		t.Errorf("%d downloads, want 1", got)
	}

	r.apply(r.release("    values: {data: {greeting: servus}}"))
	r.waitData("app", map[string]string{"chart": "1.0.0", "greeting": "servus"})
	r.apply(`apiVersion: v1
kind: Secret
metadata: {name: more}
stringData: {values.yaml: "data: {name: one}"}`)
	r.apply(r.release("    values: {data: {greeting: servus}}", "    valuesFrom: [{kind: Secret, name: more}]"))
	r.waitData("app", map[string]string{"chart": "1.0.0", "greeting": "servus", "name": "one"})
	r.run("patch", "secret", "more", "-p", `{"stringData":{"values.yaml":"data: {name: two}"}}`)
	r.waitData("app", map[string]string{"chart": "1.0.0", "greeting": "servus", "name": "two"})
	r.ready("ohr", "app")
	r.wantRecords("app", "1 superseded", "2 superseded", "3 superseded", "4 deployed")

	r.charts.Add(chartserver.ConfigMapChart("demo", "1.1.0"))
	r.apply(r.releaseOf("app", "1.1.0"))
	r.waitData("app", map[string]string{"chart": "1.1.0", "greeting": "hello"})
	r.waitEvent("UpgradeSucceeded", "app")

	r.run("delete", "ohr", "app", "--timeout=60s")
	r.waitData("app", nil)
	r.wantRecords("app")
}
