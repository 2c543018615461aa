package helmlive

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

func TestLife(t *testing.T) {
	r := newRelease(t)
	first, second := chartserver.ConfigMapChart("demo", "1.0.0+b1"), chartserver.ConfigMapChart("demo", "1.1.0")
	values := `{"data":{"big":9007199254740993,"text":"1.0","million":1048576}}`

	r.want(helm.ActionInstall, first, values)
	r.want(helm.ActionNone, first, values)

	want := map[string]string{"big": "9007199254740993", "text": "1.0", "million": "1048576", "greeting": "hello", "chart": "1.0.0+b1"}
	if diff := cmp.Diff(want, r.configMap("demo").Data); diff != "" {
		t.Error(diff)
	}

	latest := r.observe().Latest()
	if latest.ChartVersion != "1.0.0+b1" || latest.Owner != "uid-1" || latest.Content == "" || time.Since(latest.Created) > await.Limit {
		t.Errorf("the latest revision is %+v", latest)
	}

	details, err := r.client.Details(t.Context(), 1)
	if err != nil || details.Chart != "demo" || details.ChartVersion != "1.0.0+b1" || details.AppVersion != "app-1.0.0+b1" {
		t.Errorf("details are %+v, %v", details, err)
	}

	// Values that are not there any more are gone, also when none are left.
	r.want(helm.ActionUpgrade, second, "{}")
	r.want(helm.ActionNone, second, "")

	if diff := cmp.Diff(map[string]string{"greeting": "hello", "chart": "1.1.0"}, r.configMap("demo").Data); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff([]string{"2 deployed", "1 superseded"}, r.numbers()); diff != "" {
		t.Error(diff)
	}

	r.wanted.Absent = true
	r.want(helm.ActionUninstall, second, "")
	r.want(helm.ActionNone, second, "")

	if _, err := cluster.Client().CoreV1().ConfigMaps(r.namespace).Get(t.Context(), "demo", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the object is still there: %v", err)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	r := newRelease(t)
	r.settings.MaxHistory = 2

	r.want(helm.ActionInstall, chartserver.ConfigMapChart("demo", "1.0.0"), "")

	for _, version := range []string{"1.0.1", "1.0.2", "1.0.3"} {
		r.want(helm.ActionUpgrade, chartserver.ConfigMapChart("demo", version), "")
	}

	if diff := cmp.Diff([]string{"4 deployed", "3 superseded"}, r.numbers()); diff != "" {
		t.Error(diff)
	}
}

// refused is a chart whose second object the server refuses.
func refused(version string) chartserver.Chart {
	return chartOf(version, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: demo}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not-Valid}\n")
}

func TestFailedUpgradeIsRolledBack(t *testing.T) {
	r := newRelease(t)
	r.wanted.RollBack = true

	r.want(helm.ActionInstall, chartserver.ConfigMapChart("demo", "1.0.0"), "")

	for range 2 { // the first attempt and one retry
		r.wantError(helm.ActionUpgrade, refused("2.0.0"), "", helm.ReasonFailed, "Not-Valid")
		r.want(helm.ActionRollback, refused("2.0.0"), "")
	}

	r.want(helm.ActionStall, refused("2.0.0"), "")

	if diff := cmp.Diff([]string{"5 deployed", "4 failed", "3 superseded", "2 failed", "1 superseded"}, r.numbers()); diff != "" {
		t.Error(diff)
	}

	if got := r.configMap("demo").Data["chart"]; got != "1.0.0" {
		t.Errorf("the chart in effect is %s", got)
	}

	// The former content is in effect already: going back to it makes no revision.
	r.want(helm.ActionNone, chartserver.ConfigMapChart("demo", "1.0.0"), "")
	r.want(helm.ActionUpgrade, chartserver.ConfigMapChart("demo", "3.0.0"), "")
}

func TestFailedInstall(t *testing.T) {
	r := newRelease(t)

	r.wantError(helm.ActionInstall, refused("1.0.0"), "", helm.ReasonFailed, "Not-Valid")
	r.wantError(helm.ActionInstall, refused("1.0.0"), "", helm.ReasonFailed)
	r.want(helm.ActionStall, refused("1.0.0"), "")
	r.want(helm.ActionUpgrade, chartserver.ConfigMapChart("demo", "1.0.1"), "")
	r.want(helm.ActionNone, chartserver.ConfigMapChart("demo", "1.0.1"), "")
}

// deployment is a chart that never gets ready: nothing runs pods here.
func deployment(version string) chartserver.Chart {
	return chartOf(version, `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.com/web}]}
`)
}

func TestWaitingEndsWithTheTimeout(t *testing.T) {
	r := newRelease(t)
	r.settings.Wait, r.settings.Timeout = true, 10*time.Second // enough to come as far as the wait

	// Without an end of its own it would wait for ever.
	r.wantError(helm.ActionInstall, deployment("1.0.0"), "", helm.ReasonTimeout, "within 10s", "web")

	if diff := cmp.Diff([]string{"1 failed"}, r.numbers()); diff != "" {
		t.Error(diff)
	}
}

// stopWhen is a context that is cancelled as soon as something is seen.
func (r *release) stopWhen(seen func(context.Context) bool) context.Context {
	ctx, cancel := context.WithCancel(r.t.Context())
	r.t.Cleanup(cancel)

	go func() {
		defer cancel()

		for ctx.Err() == nil && !seen(ctx) {
			time.Sleep(50 * time.Millisecond)
		}
	}()

	return ctx
}

// hasDeployment reports whether the Deployment of the chart of that name is there, which is waited for next.
func (r *release) hasDeployment(ctx context.Context) bool {
	found, err := cluster.Client().AppsV1().Deployments(r.namespace).Get(ctx, "web", metav1.GetOptions{})

	return err == nil && found.Status.ObservedGeneration > 0
}

// loses reports whether a ConfigMap of the release is being deleted.
func (r *release) loses(name string) func(context.Context) bool {
	return func(ctx context.Context) bool {
		found, err := cluster.Client().CoreV1().ConfigMaps(r.namespace).Get(ctx, name, metav1.GetOptions{})

		return err == nil && found.DeletionTimestamp != nil
	}
}

func TestAStopMakesNoSecondRevision(t *testing.T) {
	for _, upgrade := range []bool{false, true} {
		name, want := "install", []string{"1 deployed"}
		action := helm.ActionInstall

		if upgrade {
			name, want, action = "upgrade", []string{"2 deployed", "1 superseded"}, helm.ActionUpgrade
		}

		t.Run(name, func(t *testing.T) {
			r := newRelease(t)
			if upgrade {
				r.want(helm.ActionInstall, chartserver.ConfigMapChart("demo", "0.9.0"), "")
			}

			r.settings.Wait = true

			got, err := r.step(r.stopWhen(r.hasDeployment), deployment("1.0.0"), "")
			if got != action || err == nil || !strings.Contains(err.Error(), "interrupted") {
				t.Fatalf("%s: %v", got, err)
			}

			if latest := r.observe().Latest(); !latest.Interrupted || latest.Status != helm.StatusFailed {
				t.Errorf("the latest revision is %+v", latest)
			}

			// Attempts differ by their settings; the interrupted one goes on with its own.
			decision, request := r.decide(deployment("1.0.0"), "")
			if decision.Action != action || decision.Resume == 0 {
				t.Fatalf("decided %+v", decision)
			}

			request.Settings.Wait = false
			request.Chart = packed{deployment("1.0.0")}

			if err := r.client.Run(t.Context(), request); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(want, r.numbers()); diff != "" {
				t.Error(diff)
			}

			if r.observe().Latest().Interrupted {
				t.Error("the mark of the interruption is still there")
			}
		})
	}
}

// setStatus makes a revision look as a crash at some point leaves it.
func (r *release) setStatus(revision string, status helm.Status) {
	r.t.Helper()

	secrets := cluster.Client().CoreV1().Secrets(r.namespace)

	record, err := secrets.Get(r.t.Context(), "sh.helm.release.v1.demo."+revision, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}

	record.Labels["status"] = string(status)
	if _, err := secrets.Update(r.t.Context(), record, metav1.UpdateOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

func TestACrashMakesNoSecondRevision(t *testing.T) {
	r := newRelease(t)
	first, second := chartserver.ConfigMapChart("demo", "1.0.0"), chartserver.ConfigMapChart("demo", "2.0.0")

	r.want(helm.ActionInstall, first, "")
	r.setStatus("v1", helm.StatusPendingInstall)
	r.want(helm.ActionInstall, first, "")
	r.want(helm.ActionNone, first, "")

	r.want(helm.ActionUpgrade, second, "")
	r.setStatus("v2", helm.StatusPendingUpgrade)
	r.setStatus("v1", helm.StatusDeployed)
	r.want(helm.ActionUpgrade, second, "")
	r.want(helm.ActionNone, second, "")

	if diff := cmp.Diff([]string{"2 deployed", "1 superseded"}, r.numbers()); diff != "" {
		t.Error(diff)
	}

	// Something else is wanted after the crash.
	r.setStatus("v2", helm.StatusPendingUpgrade)
	r.setStatus("v1", helm.StatusDeployed)
	r.want(helm.ActionUnlock, first, "")
	r.want(helm.ActionUpgrade, first, "")
	r.want(helm.ActionNone, first, "")

	if got := r.configMap("demo").Data["chart"]; got != "1.0.0" {
		t.Errorf("the chart in effect is %s", got)
	}

	// A crash in the middle of an uninstall.
	r.setStatus("v3", helm.StatusUninstalling)
	r.wanted.Absent = true
	r.want(helm.ActionUninstall, first, "")

	if got := r.numbers(); got != nil {
		t.Errorf("left behind: %v", got)
	}
}

// An uninstall that did not see its objects go keeps the records: nobody would know of the objects otherwise.
func TestAnUninstallThatDidNotFinish(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		t.Run(fmt.Sprintf("stopped %v", stopped), func(t *testing.T) {
			r := newRelease(t)
			chart := chartserver.ConfigMapChart("demo", "1.0.0")
			r.want(helm.ActionInstall, chart, "")

			hold := func(finalizers ...string) {
				t.Helper()

				held := r.configMap("demo")
				held.Finalizers = finalizers

				if _, err := cluster.Client().CoreV1().ConfigMaps(r.namespace).Update(t.Context(), held, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			hold("example.com/hold")

			r.wanted.Absent = true
			ctx, reason := t.Context(), helm.ReasonTimeout

			if stopped {
				ctx, reason = r.stopWhen(r.loses("demo")), helm.ReasonInterrupted
			} else {
				r.settings.Timeout = 10 * time.Second // enough to come as far as the wait
			}

			action, err := r.step(ctx, chart, "")
			if action != helm.ActionUninstall {
				t.Fatalf("%s", action)
			}

			wantReason(t, err, reason)

			if diff := cmp.Diff([]string{"1 uninstalling"}, r.numbers()); diff != "" {
				t.Error(diff)
			}

			hold()

			r.settings.Timeout = await.Limit
			r.want(helm.ActionUninstall, chart, "")

			if got := r.numbers(); got != nil {
				t.Errorf("left behind: %v", got)
			}
		})
	}
}

func TestForeignObjects(t *testing.T) {
	r := newRelease(t)

	if err := cluster.CreateNamespace(t.Context(), r.namespace); err != nil {
		t.Fatal(err)
	}

	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Data: map[string]string{"greeting": "mine"}}
	if _, err := cluster.Client().CoreV1().ConfigMaps(r.namespace).Create(t.Context(), foreign, metav1.CreateOptions{FieldManager: "somebody"}); err != nil {
		t.Fatal(err)
	}

	r.wantError(helm.ActionInstall, chartserver.ConfigMapChart("demo", "1.0.0"), "", helm.ReasonFailed, "cannot be imported")

	if got := r.configMap("demo").Data["greeting"]; got != "mine" {
		t.Errorf("the foreign object says %q", got)
	}

	r.settings.TakeOwnership = true
	r.want(helm.ActionInstall, chartserver.ConfigMapChart("demo", "1.0.0"), "")

	if got := r.configMap("demo").Data["greeting"]; got != "hello" {
		t.Errorf("the object that was taken over says %q", got)
	}
}

func TestSomebodyElsesEditIsOverwritten(t *testing.T) {
	r := newRelease(t)
	r.want(helm.ActionInstall, chartserver.ConfigMapChart("demo", "1.0.0"), "")

	edited := r.configMap("demo")
	edited.Data["chart"] = "edited"

	if _, err := cluster.Client().CoreV1().ConfigMaps(r.namespace).Update(t.Context(), edited, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}

	r.want(helm.ActionUpgrade, chartserver.ConfigMapChart("demo", "1.0.1"), "")

	if got := r.configMap("demo").Data["chart"]; got != "1.0.1" {
		t.Errorf("the chart in effect is %s", got)
	}
}
