package helmlive

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// hooked is a chart with a Job as a hook; no node runs its Pod here.
func hooked(event string) chartserver.Chart {
	chart := chartserver.ConfigMapChart("demo", "1.0.0")
	chart.Files["templates/hook.yaml"] = fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata:
  name: hook
  annotations: {helm.sh/hook: %s}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: hook, image: example.com/hook}]}
`, event)

	return chart
}

// finishHook marks the Job of a hook as complete or failed as soon as it is there.
func (r *release) finishHook(condition batchv1.JobConditionType) { r.finishJob("hook", condition) }

// finishJob marks a Job as complete or failed as soon as it is there.
func (r *release) finishJob(name string, condition batchv1.JobConditionType) {
	r.t.Helper()

	go func() {
		for ctx := r.t.Context(); ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
			if finish(ctx, r.namespace, name, condition) == nil {
				return
			}
		}
	}()
}

func finish(ctx context.Context, namespace, name string, condition batchv1.JobConditionType) error {
	jobs := cluster.Client().BatchV1().Jobs(namespace)

	job, err := jobs.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}

	before, now := batchv1.JobSuccessCriteriaMet, metav1.Now()
	if condition == batchv1.JobFailed {
		before = batchv1.JobFailureTarget
	} else {
		job.Status.CompletionTime = &now
	}

	// The job controller may have started it: that time cannot be changed.
	if job.Status.StartTime == nil {
		job.Status.StartTime = &now
	}

	job.Status.Active, job.Status.Ready = 0, nil
	job.Status.Conditions = []batchv1.JobCondition{
		{Type: before, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}

	_, err = jobs.UpdateStatus(ctx, job, metav1.UpdateOptions{})

	return err
}

func TestFailingHook(t *testing.T) {
	r := newRelease(t)
	r.finishHook(batchv1.JobFailed)
	r.wantError(helm.ActionInstall, hooked("pre-install"), "", helm.ReasonFailed, "pre-install", "hook")
}

func TestHookThatNeverEnds(t *testing.T) {
	r := newRelease(t)
	r.settings.Timeout = 2 * time.Second
	r.wantError(helm.ActionInstall, hooked("pre-install"), "", helm.ReasonTimeout, "within 2s")
}

// Helm removes what has the name of a hook before it makes the hook.
func TestAHookSparesWhatAnotherReleaseHas(t *testing.T) {
	r := newRelease(t)

	if err := cluster.CreateNamespace(t.Context(), r.namespace); err != nil {
		t.Fatal(err)
	}

	r.make("taken")
	r.giveAway("taken", "another")
	before := r.configMap("taken").UID

	chart := chartOf("1.0.0", configMap("one")+configMap("taken")+"  annotations: {helm.sh/hook: pre-install}\n")
	r.wantError(helm.ActionInstall, chart, "", helm.ReasonFailed, "ConfigMap "+r.namespace+"/taken belongs to Helm release "+r.namespace+"/another")

	if after := r.configMap("taken"); after.UID != before || after.Data["of"] != "another" {
		t.Errorf("the object of the other release says %v", after.Data)
	}

	r.settings.DisableHooks = true
	r.want(helm.ActionUpgrade, chart, "")
}

// What is a hook and a template, too, is the release's.
func TestAnObjectThatIsAHookAndATemplate(t *testing.T) {
	r := newRelease(t)
	r.want(helm.ActionInstall, chartOf("1.0.0", configMap("one")), "")

	hook := "  annotations: {helm.sh/hook: pre-upgrade, helm.sh/hook-delete-policy: hook-failed}\ndata: {made: first}\n"
	r.want(helm.ActionUpgrade, chartOf("2.0.0", configMap("one")+configMap("taken")+hook+configMap("taken")+"data: {of: demo}\n"), "")

	if got := r.configMap("taken"); got.Data["of"] != "demo" || got.Annotations["meta.helm.sh/release-name"] != "demo" {
		t.Errorf("it has %v and %v", got.Data, got.Annotations)
	}

	r.want(helm.ActionUpgrade, chartOf("3.0.0", configMap("one")), "")

	if r.has("taken") {
		t.Error("it is left")
	}
}

func TestHooksCanBeDisabled(t *testing.T) {
	r := newRelease(t)
	r.settings.DisableHooks = true
	r.want(helm.ActionInstall, hooked("pre-install"), "")
}

func TestTests(t *testing.T) {
	for condition, want := range map[batchv1.JobConditionType]helm.Tested{batchv1.JobComplete: helm.TestsPassed, batchv1.JobFailed: helm.TestsFailed} {
		t.Run(string(want), func(t *testing.T) {
			r := newRelease(t)
			r.wanted.Test = true

			r.want(helm.ActionInstall, hooked("test"), "")
			r.finishHook(condition)

			if action, err := r.step(t.Context(), hooked("test"), ""); action != helm.ActionTest || (err == nil) != (want == helm.TestsPassed) {
				t.Fatalf("%s: %v", action, err)
			}

			if got := r.observe().Latest().Tested; got != want {
				t.Errorf("tests are %q, want %q", got, want)
			}

			r.want(helm.ActionNone, hooked("test"), "")

			// A new revision is a new matter.
			r.want(helm.ActionUpgrade, hooked("test"), "data: {x: y}")

			if got := r.observe().Latest().Tested; got != "" {
				t.Errorf("the new revision is %q", got)
			}
		})
	}
}

// Tests that this user may not run have failed: they are not run again and again.
func TestTestsThatAreForbidden(t *testing.T) {
	owner := newRelease(t)
	owner.wanted.Test = true
	owner.want(helm.ActionInstall, hooked("test"), "")

	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "records"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "records"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "records"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "keeper"}},
	}

	rbac := cluster.Client().RbacV1()
	_, err := rbac.Roles(owner.namespace).Create(t.Context(), role, metav1.CreateOptions{})

	if _, bound := rbac.RoleBindings(owner.namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil || bound != nil {
		t.Fatal(err, bound)
	}

	config, err := cluster.RESTConfigFor("keeper")
	if err != nil {
		t.Fatal(err)
	}

	r := newReleaseFor(t, config)
	r.wanted.Test = true
	r.wantError(helm.ActionTest, hooked("test"), "", helm.ReasonForbidden, "jobs")
	r.want(helm.ActionNone, hooked("test"), "")

	if got := r.observe().Latest().Tested; got != helm.TestsFailed {
		t.Errorf("tests are %q", got)
	}
}

// An object may be a hook and a template. The API server notes the releases' field manager on what the hook makes, by which it is known
// to be no one else's.
func TestAnUpgradeAddsAHookThatIsATemplate(t *testing.T) {
	r := newRelease(t)
	r.want(helm.ActionInstall, chartserver.ConfigMapChart("demo", "1.0.0"), "")

	both := chartserver.ConfigMapChart("demo", "1.1.0")
	both.Files["templates/hook.yaml"] = `apiVersion: v1
kind: ConfigMap
metadata:
  name: both
  annotations: {helm.sh/hook: pre-upgrade}
`
	both.Files["templates/both.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: both}\ndata: {a: b}\n"
	r.want(helm.ActionUpgrade, both, "")

	made := r.configMap("both")
	if made.Data["a"] != "b" || made.Labels["app.kubernetes.io/managed-by"] != "Helm" {
		t.Errorf("%+v", made)
	}
}
