package helmlive

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// driftChart has a ConfigMap, a Secret and a Deployment.
func driftChart() chartserver.Chart {
	chart := deployment("1.0.0")
	chart.Files["templates/more.yaml"] = "apiVersion: v1\nkind: Secret\nmetadata: {name: pass}\nstringData: {password: canary}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: demo}\ndata: {a: \"1\", b: \"2\"}\n"

	return chart
}

func texts(differences []drift.Difference) []string {
	var all []string
	for _, difference := range differences {
		all = append(all, difference.String())
	}

	return all
}

// An object that the server refuses to compare keeps the others from nothing.
func TestDriftOfTheRest(t *testing.T) {
	r := newRelease(t)
	r.want(helm.ActionInstall, chartOf("1.0.0", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fixed}\nimmutable: true\ndata: {a: \"1\"}\n---\n"+
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\ndata: {a: \"1\"}\n"), "")

	core := cluster.Client().CoreV1().ConfigMaps(r.namespace)
	fixed := r.configMap("fixed")
	fixed.ResourceVersion, fixed.UID, fixed.ManagedFields, fixed.Data = "", "", nil, map[string]string{"a": "2"}

	if err := errors.Join(core.Delete(t.Context(), "fixed", metav1.DeleteOptions{}), core.Delete(t.Context(), "other", metav1.DeleteOptions{})); err != nil {
		t.Fatal(err)
	}

	if _, err := core.Create(t.Context(), fixed, metav1.CreateOptions{FieldManager: "kubectl"}); err != nil {
		t.Fatal(err)
	}

	found, err := r.client.Drift(t.Context(), 1, nil)
	wantReason(t, err, helm.ReasonFailed)

	if diff := cmp.Diff([]string{"ConfigMap " + r.namespace + "/other is missing"}, texts(found)); diff != "" {
		t.Error(diff)
	}

	if err == nil || !strings.Contains(err.Error(), "compare ConfigMap "+r.namespace+"/fixed") {
		t.Error(err)
	}

	_, err = r.client.Correct(t.Context(), 1, nil, mayBegin)
	wantReason(t, err, helm.ReasonFailed)

	if got := r.configMap("other").Data["a"]; got != "1" {
		t.Errorf("the object that can be corrected says %q", got)
	}
}

func TestDrift(t *testing.T) {
	r := newRelease(t)
	r.want(helm.ActionInstall, driftChart(), "")

	wantDrift := func(want []string, ignores ...drift.Ignore) {
		t.Helper()

		found, err := r.client.Drift(t.Context(), 1, ignores)
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(want, texts(found)); diff != "" {
			t.Error(diff)
		}
	}

	wantDrift(nil)

	ctx, core := t.Context(), cluster.Client().CoreV1()
	ns := r.namespace

	patch := func(err error) {
		t.Helper()

		if err != nil {
			t.Fatal(err)
		}
	}

	_, err := core.ConfigMaps(ns).Patch(ctx, "demo", types.MergePatchType, []byte(`{"data":{"a":"edited","b":null,"extra":"x"}}`), metav1.PatchOptions{FieldManager: "kubectl"})
	patch(err)
	_, err = cluster.Client().AppsV1().Deployments(ns).Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{FieldManager: "scaler"})
	patch(err)
	patch(core.Secrets(ns).Delete(ctx, "pass", metav1.DeleteOptions{}))

	// A field that the release does not set, such as the replicas here, is nobody's drift.
	changed := "ConfigMap " + ns + "/demo differs at /data/a, /data/b"
	gone := "Secret " + ns + "/pass is missing"
	wantDrift([]string{gone, changed})
	wantDrift([]string{gone, "ConfigMap " + ns + "/demo differs at /data/b"}, drift.Ignore{Kind: "ConfigMap", Paths: []string{"/data/a"}})

	found, err := r.client.Correct(ctx, 1, []drift.Ignore{{Paths: []string{"/data/a"}}}, mayBegin)
	if err != nil || len(found) != 2 {
		t.Fatalf("%v, %v", found, err)
	}

	if diff := cmp.Diff(map[string]string{"a": "edited", "b": "2", "extra": "x"}, r.configMap("demo").Data); diff != "" {
		t.Error(diff)
	}

	wantDrift([]string{"ConfigMap " + ns + "/demo differs at /data/a"})

	if _, err := r.client.Correct(ctx, 1, nil, mayBegin); err != nil {
		t.Fatal(err)
	}

	wantDrift(nil)

	if diff := cmp.Diff([]string{"1 deployed"}, r.numbers()); diff != "" {
		t.Error(diff)
	}
}

// The cluster removes a Job some time after its end if the chart says so: it is not missing then, and does not run again.
func TestAJobThatTheClusterRemovesIsNoDrift(t *testing.T) {
	r := newRelease(t)
	job := "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: %s}\n" +
		"spec: {%s template: {spec: {restartPolicy: Never, containers: [{name: work, image: example.com/work}]}}}\n"
	r.want(helm.ActionInstall, chartOf("1.0.0", fmt.Sprintf(job, "work", "")+fmt.Sprintf(job, "brief", "ttlSecondsAfterFinished: 3600,")), "")
	r.removeJob("work")
	r.removeJob("brief")

	want := []string{"Job " + r.namespace + "/work is missing"}

	found, err := r.client.Drift(t.Context(), 1, nil)
	if diff := cmp.Diff(want, texts(found)); diff != "" || err != nil {
		t.Error(diff, err)
	}

	found, err = r.client.Correct(t.Context(), 1, nil, mayBegin)
	if diff := cmp.Diff(want, texts(found)); diff != "" || err != nil {
		t.Error(diff, err)
	}

	jobs, err := cluster.Client().BatchV1().Jobs(r.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(jobs.Items) != 1 || jobs.Items[0].Name != "work" {
		t.Errorf("there are %v, %v", jobs, err)
	}
}

// mayBegin is what a correction asks that nobody takes back.
func mayBegin() error { return nil }
