package live

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// installByHand does what another client of Helm 4 does that owns fields under a name of its own.
func (r *release) installByHand(manager string, packed chartserver.Chart) {
	r.t.Helper()

	ours := kube.ManagedFieldsManager
	defer func() { kube.ManagedFieldsManager = ours }()

	kube.ManagedFieldsManager = manager

	chart, err := loader.LoadArchive(bytes.NewReader(packed.Pack()))
	if err != nil {
		r.t.Fatal(err)
	}

	install := action.NewInstall(r.byHand())
	install.ReleaseName, install.Namespace, install.CreateNamespace = "demo", r.namespace, true
	install.Timeout, install.WaitStrategy = 10*time.Second, kube.HookOnlyStrategy

	if _, err := install.Run(chart, nil); err != nil {
		r.t.Fatal(err)
	}
}

// owners are those who have applied fields of an object.
func owners(fields []metav1.ManagedFieldsEntry) []string {
	var names []string

	for _, entry := range fields {
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			names = append(names, entry.Manager)
		}
	}

	slices.Sort(names)

	return names
}

// What the chart drops after a release was taken over goes, although another client has applied it.
func TestATakeoverDropsWhatTheChartDrops(t *testing.T) {
	for _, manager := range []string{"helm", "helm-controller"} {
		t.Run(manager, func(t *testing.T) {
			r := newRelease(t)
			r.installByHand(manager, chartOf("1.0.0", configMap("one")+"  labels: {kept: \"1\", dropped: \"1\"}\ndata: {kept: \"1\", changed: \"1\", dropped: \"1\"}\n"))

			edited := r.configMap("one")
			edited.Data["extra"] = "x"

			if _, err := cluster.Client().CoreV1().ConfigMaps(r.namespace).Update(t.Context(), edited, metav1.UpdateOptions{FieldManager: "kubectl"}); err != nil {
				t.Fatal(err)
			}

			r.settings.TakeOwnership = true
			r.want(helm.ActionUpgrade, chartOf("2.0.0", configMap("one")+"  labels: {kept: \"1\"}\ndata: {kept: \"1\", changed: \"2\"}\n"), "")

			got := r.configMap("one")
			if diff := cmp.Diff(map[string]string{"kept": "1", "changed": "2", "extra": "x"}, got.Data); diff != "" {
				t.Error(diff)
			}

			if diff := cmp.Diff(map[string]string{"kept": "1", "app.kubernetes.io/managed-by": "Helm"}, got.Labels); diff != "" {
				t.Error(diff)
			}

			if diff := cmp.Diff([]string{helm.FieldManager}, owners(got.ManagedFields)); diff != "" {
				t.Error(diff)
			}

			r.want(helm.ActionUpgrade, chartOf("3.0.0", configMap("one")+"data: {changed: \"2\"}\n"), "")

			if diff := cmp.Diff(map[string]string{"changed": "2", "extra": "x"}, r.configMap("one").Data); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A field that cannot change stays, and the rest goes on.
func TestATakeoverKeepsWhatCannotBeDropped(t *testing.T) {
	r := newRelease(t)
	job := "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: work}\n" +
		"spec: {template: {spec: {restartPolicy: Never, containers: [{name: work, image: example.com/work}]%s}}}\n"

	r.installByHand("helm", chartOf("1.0.0", configMap("zero")+"data: {a: \"1\"}\n"+fmt.Sprintf(job, ", terminationGracePeriodSeconds: 7")))
	r.settings.TakeOwnership = true
	r.want(helm.ActionUpgrade, chartOf("2.0.0", configMap("zero")+fmt.Sprintf(job, "")), "")

	found, err := cluster.Client().BatchV1().Jobs(r.namespace).Get(t.Context(), "work", metav1.GetOptions{})
	if err != nil || *found.Spec.Template.Spec.TerminationGracePeriodSeconds != 7 {
		t.Errorf("%v, %v", found, err)
	}

	if got := r.configMap("zero").Data; len(got) > 0 {
		t.Errorf("the other object has %v", got)
	}
}
