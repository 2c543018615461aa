package helmlive

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// working is a chart with a Job that is no hook; it begins, but no node runs its Pod here.
func working() chartserver.Chart {
	return chartOf("1.0.0", `apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: work, image: example.com/work}]}
`)
}

func TestWaitForJobs(t *testing.T) {
	for _, test := range []struct {
		action  helm.Action
		chart   chartserver.Chart
		prepare func(*release)
	}{
		{helm.ActionInstall, working(), func(*release) {}},
		{helm.ActionUpgrade, working(), func(r *release) { r.want(helm.ActionInstall, chartserver.ConfigMapChart("demo", "0.9.0"), "") }},
		{helm.ActionRollback, refused("2.0.0"), func(r *release) {
			r.wanted.RollBack = true
			r.finishJob("work", batchv1.JobComplete)
			r.want(helm.ActionInstall, working(), "")
			r.wantError(helm.ActionUpgrade, refused("2.0.0"), "", helm.ReasonFailed, "Not-Valid")
			r.removeJob("work") // so that the rollback makes one that is not complete
		}},
	} {
		for _, waitForJobs := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %v", test.action, waitForJobs), func(t *testing.T) {
				r := newRelease(t)
				r.settings.Wait, r.settings.WaitForJobs = true, waitForJobs
				test.prepare(r)

				ended := make(chan error, 1)

				go func() {
					got, err := r.step(t.Context(), test.chart, "")
					if err == nil && got != test.action {
						err = fmt.Errorf("%s was done", got)
					}

					ended <- err
				}()

				r.waitJob("work")

				if waitForJobs {
					wantNoEnd(t, ended)

					r.finishJob("work", batchv1.JobComplete) // again after a conflict with the job controller
				}

				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A Job that fails is a failure of the action.
func TestWaitForAJobThatFails(t *testing.T) {
	r := newRelease(t)
	r.settings.Wait, r.settings.WaitForJobs = true, true
	r.finishJob("work", batchv1.JobFailed)
	r.wantError(helm.ActionInstall, working(), "", helm.ReasonFailed, "work")
}

// wantNoEnd fails if the action ends although its Job runs. Without the wait it
// would take a moment: the Job has begun.
func wantNoEnd(t *testing.T, ended <-chan error) {
	t.Helper()

	select {
	case err := <-ended:
		t.Fatalf("the action has ended while the Job runs: %v", err)
	case <-time.After(3 * time.Second):
	}
}

// waitJob waits until a Job has begun.
func (r *release) waitJob(name string) {
	r.t.Helper()

	await.Until(r.t, "Job "+name+" begins", func() bool {
		job, err := cluster.Client().BatchV1().Jobs(r.namespace).Get(r.t.Context(), name, metav1.GetOptions{})

		return err == nil && job.Status.StartTime != nil
	})
}

func (r *release) removeJob(name string) {
	r.t.Helper()

	jobs := cluster.Client().BatchV1().Jobs(r.namespace)
	if err := jobs.Delete(r.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
		r.t.Fatal(err)
	}

	await.Until(r.t, "Job "+name+" goes", func() bool {
		_, err := jobs.Get(r.t.Context(), name, metav1.GetOptions{})

		return apierrors.IsNotFound(err)
	})
}
