package helmlive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// as does something with a chart as another client of Helm 4 does that owns fields under a name of its own.
func (r *release) as(manager string, packed chartserver.Chart, do func(chart *chart.Chart) error) {
	r.t.Helper()

	ours := kube.ManagedFieldsManager
	defer func() { kube.ManagedFieldsManager = ours }()

	kube.ManagedFieldsManager = manager

	chart, err := loader.LoadArchive(bytes.NewReader(packed.Pack()))
	if err != nil {
		r.t.Fatal(err)
	}

	if err := do(chart); err != nil {
		r.t.Fatal(err)
	}
}

// installByHand does what helm install does.
func (r *release) installByHand(manager string, packed chartserver.Chart) {
	r.t.Helper()

	r.as(manager, packed, func(chart *chart.Chart) error {
		install := action.NewInstall(r.byHand())
		install.ReleaseName, install.Namespace, install.CreateNamespace = "demo", r.namespace, true
		install.Timeout, install.WaitStrategy = await.Limit, kube.HookOnlyStrategy

		_, err := install.Run(chart, nil)

		return err
	})
}

// upgradeByHand does what helm upgrade --force-conflicts does.
func (r *release) upgradeByHand(manager string, packed chartserver.Chart) {
	r.t.Helper()

	r.as(manager, packed, func(chart *chart.Chart) error {
		upgrade := action.NewUpgrade(r.byHand())
		upgrade.Namespace, upgrade.ForceConflicts = r.namespace, true
		upgrade.Timeout, upgrade.WaitStrategy = await.Limit, kube.HookOnlyStrategy

		_, err := upgrade.Run("demo", chart, nil)

		return err
	})
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

// workload is a chart of a Deployment.
func workload(version, strategy, env string) chartserver.Chart {
	return chartOf(version, `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  strategy: `+strategy+`
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.com/web, env: [`+env+`]}]}
`)
}

// formerWorkload and newWorkload want what no object can have together.
func formerWorkload() chartserver.Chart {
	return workload("1.0.0", "{type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}",
		`{name: CHANGED, value: former}, {name: DROPPED, value: former}, {name: KEPT, value: kept}`)
}

func newWorkload(version string) chartserver.Chart {
	return workload(version, "{type: Recreate}", `{name: CHANGED, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: KEPT, value: kept}`)
}

func (r *release) deployment() *appsv1.Deployment {
	r.t.Helper()

	found, err := cluster.Client().AppsV1().Deployments(r.namespace).Get(r.t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}

	return found
}

// applyAs applies a label to the Deployment: an annotation would count as a change of it.
func (r *release) applyAs(manager string) {
	r.t.Helper()

	applied := fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {by: %s}}}", manager)

	_, err := cluster.Client().AppsV1().Deployments(r.namespace).Patch(r.t.Context(), "web", types.ApplyYAMLPatchType, []byte(applied),
		metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		r.t.Fatal(err)
	}
}

// wantWorkload fails unless the Deployment is as the new chart has it, after so many changes.
func (r *release) wantWorkload(generation int64) {
	r.t.Helper()

	got := r.deployment()
	if got.Generation != generation {
		r.t.Errorf("the Deployment was changed %d times, want %d", got.Generation-1, generation-1)
	}

	if got.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType || got.Spec.Strategy.RollingUpdate != nil {
		r.t.Errorf("the strategy is %+v", got.Spec.Strategy)
	}

	var env []string
	for _, one := range got.Spec.Template.Spec.Containers[0].Env {
		env = append(env, fmt.Sprintf("%s %q %v", one.Name, one.Value, one.ValueFrom != nil))
	}

	if diff := cmp.Diff([]string{`CHANGED "" true`, `KEPT "kept" false`}, env); diff != "" {
		r.t.Error(diff)
	}
}

// patches are the kinds of PATCH requests that change a Deployment; each asks before it is sent.
type patches struct {
	kinds  []string
	before func(kind string) error
}

func (p *patches) watched(config *rest.Config) *rest.Config {
	copied := rest.CopyConfig(config)
	copied.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/deployments/") && request.URL.Query().Get("dryRun") == "" {
				kind := request.Header.Get("Content-Type")
				p.kinds = append(p.kinds, kind)

				if p.before != nil {
					if err := p.before(kind); err != nil {
						return nil, err
					}
				}
			}

			return next.RoundTrip(request)
		})
	})

	return copied
}

// A takeover may bring another chart: an object is changed once, and nothing that only the former chart wanted is in the way.
func TestATakeoverChangesAnObjectOnce(t *testing.T) {
	for name, begin := range map[string]func(r *release){
		"of the command line": func(r *release) { r.installByHand("helm", formerWorkload()) },
		"of Flux":             func(r *release) { r.installByHand("helm-controller", formerWorkload()) },
		"of both": func(r *release) {
			r.installByHand("helm", formerWorkload())
			r.upgradeByHand("helm-controller", formerWorkload())
		},
		"upgraded by hand": func(r *release) {
			r.want(helm.ActionInstall, formerWorkload(), "")
			r.upgradeByHand("helm", formerWorkload())
		},
	} {
		t.Run(name, func(t *testing.T) {
			var sent patches

			r := newReleaseFor(t, sent.watched(cluster.RESTConfig()))
			begin(r)
			r.applyAs("argocd-controller")

			r.settings.TakeOwnership = true
			r.want(helm.ActionUpgrade, newWorkload("2.0.0"), "")
			r.wantWorkload(2)

			got := r.deployment()
			if diff := cmp.Diff([]string{"argocd-controller", helm.FieldManager}, owners(got.ManagedFields)); diff != "" {
				t.Error(diff)
			}

			if got.Labels["by"] != "argocd-controller" {
				t.Errorf("what another tool has applied is gone: %v", got.Labels)
			}

			// The second time there is nothing to take.
			sent.kinds = nil
			r.want(helm.ActionUpgrade, newWorkload("2.0.1"), "")
			r.wantWorkload(2)

			if diff := cmp.Diff([]string{string(types.ApplyPatchType)}, sent.kinds); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A takeover that ends between its two writes is finished by the next attempt; somebody who changes the object meanwhile is not
// written over.
func TestATakeoverIsInterrupted(t *testing.T) {
	var (
		r       *release
		sent    patches
		refused bool
	)

	sent.before = func(kind string) error {
		switch {
		case kind == string(types.JSONPatchType) && len(sent.kinds) == 1:
			r.applyAs("argocd-controller")
		case kind == string(types.ApplyPatchType) && !refused:
			refused = true

			return errors.New("the connection is lost")
		}

		return nil
	}

	r = newReleaseFor(t, sent.watched(cluster.RESTConfig()))
	r.installByHand("helm", formerWorkload())
	r.settings.TakeOwnership, r.wanted.Retries = true, 2

	if action, err := r.step(t.Context(), newWorkload("2.0.0"), ""); action != helm.ActionUpgrade || err == nil {
		t.Fatalf("%s: %v", action, err)
	}

	got := r.deployment()
	if got.Generation != 1 || got.Labels["by"] != "argocd-controller" {
		t.Errorf("the Deployment of generation %d has labels %v", got.Generation, got.Labels)
	}

	if diff := cmp.Diff([]string{"argocd-controller", helm.FieldManager}, owners(got.ManagedFields)); diff != "" {
		t.Error(diff)
	}

	r.want(helm.ActionUpgrade, newWorkload("2.0.0"), "")
	r.wantWorkload(2)

	// The controller of Deployments may change it, too.
	if diff := cmp.Diff([]string{string(types.JSONPatchType), string(types.ApplyPatchType)}, slices.Compact(sent.kinds)); diff != "" {
		t.Error(diff)
	}
}

// A rollback to the revision of the former client has all of its fields, whether the failed revision came as far as the object or not.
func TestATakeoverIsRolledBack(t *testing.T) {
	for name, bad := range map[string]string{
		"before the object": notValid,
		"behind the object": "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: Not-Valid}\n" +
			"spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelease(t)
			r.installByHand("helm", formerWorkload())

			former := r.deployment().Spec
			next := newWorkload("2.0.0")
			next.Files["templates/bad.yaml"] = bad

			r.settings.TakeOwnership, r.wanted.RollBack = true, true
			r.wantError(helm.ActionUpgrade, next, "", helm.ReasonFailed, "Not-Valid")
			r.want(helm.ActionRollback, next, "")

			got := r.deployment()
			if diff := cmp.Diff(former, got.Spec); diff != "" {
				t.Error(diff)
			}

			if diff := cmp.Diff([]string{helm.FieldManager}, owners(got.ManagedFields)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What another release has is written with takeOwnership, but nothing is taken from its client before it is this release's.
func TestATakeoverTakesNoFieldsOfAnotherRelease(t *testing.T) {
	r := newRelease(t)
	labelled := func(labels string) string { return configMap("one") + labels + configMap("two") + labels }

	r.installByHand("helm", chartOf("1.0.0", labelled("  labels: {dropped: \"1\"}\n")))
	r.giveAway("two", "another")

	r.settings.TakeOwnership = true
	r.want(helm.ActionUpgrade, chartOf("2.0.0", labelled("")), "")

	if one, two := r.configMap("one"), r.configMap("two"); one.Labels["dropped"] != "" || two.Labels["dropped"] == "" {
		t.Errorf("one has labels %v, two %v", one.Labels, two.Labels)
	}

	if diff := cmp.Diff([]string{"helm", helm.FieldManager}, owners(r.configMap("two").ManagedFields)); diff != "" {
		t.Error(diff)
	}

	r.want(helm.ActionUpgrade, chartOf("3.0.0", labelled("")), "")

	if two := r.configMap("two"); two.Labels["dropped"] != "" {
		t.Errorf("two has labels %v", two.Labels)
	}
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

// formerJob and newJob are charts of a Job. It cannot drop what only the former one has; the new one may have a label.
func formerJob() chartserver.Chart {
	return jobChart("1.0.0", "", ", terminationGracePeriodSeconds: 7")
}

func newJob(version, label string) chartserver.Chart { return jobChart(version, label, "") }

func jobChart(version, label, podSpec string) chartserver.Chart {
	return chartOf(version, fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: work, labels: {%s}}\n"+
		"spec: {template: {spec: {restartPolicy: Never, containers: [{name: work, image: example.com/work}]%s}}}\n", label, podSpec))
}

// wantJob fails unless the Job has what it cannot drop, and a label or none; it returns its fields' owners.
func (r *release) wantJob(label string) []string {
	r.t.Helper()

	found, err := cluster.Client().BatchV1().Jobs(r.namespace).Get(r.t.Context(), "work", metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}

	if seconds := *found.Spec.Template.Spec.TerminationGracePeriodSeconds; seconds != 7 || found.Labels["ours"] != label {
		r.t.Errorf("terminationGracePeriodSeconds: %d; labels: %v", seconds, found.Labels)
	}

	return owners(found.ManagedFields)
}

// A field that cannot change stays, and the rest goes on, also the next time: what the release itself has added goes when its chart
// drops it.
func TestATakeoverKeepsWhatCannotBeDropped(t *testing.T) {
	for name, others := range map[string][]string{"of one": nil, "of two": {"helm-controller"}} {
		t.Run(name, func(t *testing.T) {
			r := newRelease(t)
			r.installByHand("helm", beside(formerJob(), "data: {a: \"1\"}\n"))

			for _, other := range others {
				r.upgradeByHand(other, beside(formerJob(), "data: {a: \"1\"}\n"))
			}

			want := append([]string{"helm", helm.FieldManager}, others...)
			slices.Sort(want)

			r.settings.TakeOwnership = true

			for _, test := range []struct{ version, label, want string }{{"2.0.0", "ours: added", "added"}, {"3.0.0", "ours: added", "added"}, {"4.0.0", "", ""}, {"5.0.0", "", ""}} {
				r.want(helm.ActionUpgrade, beside(newJob(test.version, test.label), ""), "")

				if diff := cmp.Diff(want, r.wantJob(test.want)); diff != "" {
					t.Errorf("%s: %s", test.version, diff)
				}

				if got := r.configMap("zero").Data; len(got) > 0 {
					t.Errorf("the other object has %v", got)
				}
			}
		})
	}
}

// beside adds a ConfigMap to a chart.
func beside(chart chartserver.Chart, data string) chartserver.Chart {
	chart.Files["templates/zero.yaml"] = configMap("zero") + data

	return chart
}

// A server that cannot say whether a field may go has not said that it may: nothing is taken before it has. If a webhook cannot be asked
// at all, everything stays with the other client.
func TestATakeoverAsksAgainWhatMayBeDropped(t *testing.T) {
	const failed = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"the webhook hangs"}`
	const unable = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400,"message":"admission webhook \"w\" does not support dry run"}`

	var answer string

	config := rest.CopyConfig(cluster.RESTConfig())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			query := request.URL.Query()
			if answer == "" || request.Method != http.MethodPatch || query.Get("dryRun") == "" || query.Get("fieldManager") == helm.FieldManager {
				return next.RoundTrip(request)
			}

			code := http.StatusInternalServerError
			if answer == unable {
				code = http.StatusBadRequest
			}

			return &http.Response{
				StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: request,
			}, nil
		})
	})

	r := newReleaseFor(t, config)
	r.installByHand("helm", formerJob())
	r.settings.TakeOwnership, r.wanted.Retries = true, 5

	for _, test := range []struct{ version, label, before, after string }{{"2.0.0", "ours: added", "", "added"}, {"3.0.0", "", "added", ""}} {
		before := r.wantJob(test.before)
		answer = failed

		if action, err := r.step(t.Context(), newJob(test.version, test.label), ""); action != helm.ActionUpgrade || err == nil || !strings.Contains(err.Error(), "the webhook hangs") {
			t.Fatalf("%s: %s: %v", test.version, action, err)
		}

		if diff := cmp.Diff(before, r.wantJob(test.before)); diff != "" {
			t.Errorf("%s: %s", test.version, diff)
		}

		answer = ""
		r.want(helm.ActionUpgrade, newJob(test.version, test.label), "")

		if diff := cmp.Diff([]string{"helm", helm.FieldManager}, r.wantJob(test.after)); diff != "" {
			t.Errorf("%s: %s", test.version, diff)
		}
	}

	answer = unable
	r.want(helm.ActionUpgrade, newJob("4.0.0", ""), "")

	if diff := cmp.Diff([]string{"helm", helm.FieldManager}, r.wantJob("")); diff != "" {
		t.Error(diff)
	}
}
