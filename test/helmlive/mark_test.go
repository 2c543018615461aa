package helmlive

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// The hub in the mark is written with one write of the record that changes nothing else, and only over the mark that is
// expected there.
func TestMark(t *testing.T) {
	r := newRelease(t)
	r.want(helm.ActionInstall, chartserver.ConfigMapChart("demo", "1.0.0"), "")

	record := func() *corev1.Secret {
		t.Helper()

		found, err := cluster.Client().CoreV1().Secrets(r.namespace).Get(t.Context(), "sh.helm.release.v1.demo.v1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}

		return found
	}
	before := record()

	for name, mark := range map[string]helm.Mark{
		"no such revision": {Revision: 7, Owner: "uid-1", To: "hub-1"},
		"another's":        {Revision: 1, Owner: "uid-2", To: "hub-1"},
		"another hub's":    {Revision: 1, Owner: "uid-1", From: "hub-2", To: "hub-1"},
	} {
		var failure *helm.Error
		if err := r.client.Mark(t.Context(), mark); !errors.As(err, &failure) || failure.Reason != helm.ReasonInterrupted {
			t.Errorf("%s: %v", name, err)
		}
	}

	mark := helm.Mark{Revision: 1, Owner: "uid-1", To: "hub-1", DryRun: true}
	if err := r.client.Mark(t.Context(), mark); err != nil || record().ResourceVersion != before.ResourceVersion {
		t.Errorf("a rehearsal wrote the record: %v", err)
	}

	if mark.DryRun = false; r.client.Mark(t.Context(), mark) != nil || r.observe().Latest().Hub != "hub-1" {
		t.Errorf("the latest revision is %+v", r.observe().Latest())
	}

	after := record()
	before.Labels["omni.texashpc.com/hub-id"] = "hub-1"
	before.ResourceVersion, before.ManagedFields = after.ResourceVersion, after.ManagedFields

	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}

	// Helm goes on with it.
	r.want(helm.ActionNone, chartserver.ConfigMapChart("demo", "1.0.0"), "")
	r.want(helm.ActionUpgrade, chartserver.ConfigMapChart("demo", "2.0.0"), "")
}

// A rollback goes back to a revision that was made before the release was taken over. What it makes is the new owner's.
func TestARollbackIsTheOwners(t *testing.T) {
	r := newRelease(t)
	r.wanted.RollBack = true
	r.wanted.Owner, r.wanted.Hub = "former", "hub-0"
	r.want(helm.ActionInstall, chartserver.ConfigMapChart("demo", "1.0.0"), "")

	r.wanted.Owner, r.wanted.Hub = "uid-1", "hub-1"
	r.wantError(helm.ActionUpgrade, refused("2.0.0"), "", helm.ReasonFailed, "Not-Valid")
	r.want(helm.ActionRollback, refused("2.0.0"), "")

	if latest := r.observe().Latest(); latest.Number != 3 || latest.Owner != "uid-1" || latest.Hub != "hub-1" {
		t.Errorf("the latest revision is %+v", latest)
	}
}
