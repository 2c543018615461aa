package omnikubeconfigexport

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

func TestRotation(t *testing.T) {
	f := newFixture(t)
	f.ready()

	first := f.get().Status
	f.now = first.NextRotationTime.Add(-time.Second)
	f.ready()

	if f.asked() != 1 {
		t.Fatalf("rotated before it was due")
	}

	f.now = first.NextRotationTime.Time
	// Omni's clock is a real one, and a token of the same second is the same token.
	time.Sleep(1100 * time.Millisecond)
	f.ready()

	if second := f.get().Status; f.asked() != 2 || second.KubeconfigHash == first.KubeconfigHash || !second.LastRotationTime.Time.Equal(f.now.Truncate(time.Second)) {
		t.Errorf("asked %d times; status %+v", f.asked(), second)
	}
}

// Omni is down when a renewal is due: the old kubeconfig stays, and the object says so.
func TestRotationWhileOmniIsDown(t *testing.T) {
	f := newFixture(t)
	f.ready()

	secret, status := f.secret("target"), f.get().Status
	f.now = status.NextRotationTime.Time
	remove := f.omni.Inject(omnisim.Fault{Method: "Kubeconfig", Code: codes.Unavailable, Message: "connection refused"})

	f.expect(metav1.ConditionTrue, v1alpha1.ReasonRenewalFailing, "valid until "+words.Time(status.ExpirationTime.Time))

	// An object that is Ready is seen by no other alert.
	if err := testutil.CollectAndCompare(f.reconciler.options.Kubeconfigs, strings.NewReader(fmt.Sprintf(`
# HELP omni_kubeconfig_renewal_timestamp_seconds When the kubeconfig that an OmniKubeconfigExport wrote is to be renewed, in seconds since 1970.
# TYPE omni_kubeconfig_renewal_timestamp_seconds gauge
omni_kubeconfig_renewal_timestamp_seconds{name="automation",namespace="team"} %d
`, f.now.Unix())), "omni_kubeconfig_renewal_timestamp_seconds"); err != nil {
		t.Error(err)
	}

	after := f.get().Status
	if diff := cmp.Diff(secret, f.secret("target")); diff != "" || after.KubeconfigHash != status.KubeconfigHash ||
		!after.ExpirationTime.Equal(status.ExpirationTime) || !after.NextRotationTime.Equal(status.NextRotationTime) {
		t.Errorf("status %+v; the Secret changed:\n%s", after, diff)
	}

	remove()
	time.Sleep(1100 * time.Millisecond)

	f.now = f.now.Add(10 * time.Minute)
	f.ready()

	if f.get().Status.KubeconfigHash == status.KubeconfigHash {
		t.Error("not renewed after Omni came back")
	}
}

// A rotation that does not happen is tried again soon, and less often the longer that lasts: many exports that Omni refuses
// for weeks must not ask it all the time.
func TestOverdueRotationIsTriedLessAndLessOften(t *testing.T) {
	f := newFixture(t)
	f.ready()

	export := f.get()
	for overdue, want := range map[time.Duration]time.Duration{
		0: callPause, time.Minute: callPause, time.Hour: 6 * time.Minute, 100 * 24 * time.Hour: interval,
	} {
		f.now = export.Status.NextRotationTime.Add(overdue)
		if got := f.reconciler.interval(export); got != want {
			t.Errorf("%v after it was due, it is tried again after %v, not %v", overdue, got, want)
		}
	}
}

// Without a valid kubeconfig an Omni that is down is a failure.
func TestExpiredWhileOmniIsDown(t *testing.T) {
	f := newFixture(t)
	f.ready()

	status := f.get().Status
	f.now = status.ExpirationTime.Time
	f.omni.Inject(omnisim.Fault{Method: "Kubeconfig", Code: codes.Unavailable, Message: "connection refused"})
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonUnreachable)

	if f.secret("target") == nil || f.get().Status.KubeconfigHash != status.KubeconfigHash {
		t.Error("the old Secret or status was not kept")
	}
}

// Omni issues, and then the Secret cannot be written: the same kubeconfig is written later.
func TestWhatWasIssuedIsNotLost(t *testing.T) {
	f := newFixture(t)
	f.failWrites = true

	for range 4 {
		if _, err := f.reconcile(); err == nil {
			t.Fatal("a failed write is no error")
		} else if text := err.Error(); !errors.Is(err, errDiskFull) || !strings.Contains(text, errDiskFull.Error()) || strings.Contains(text, "token: ey") {
			t.Errorf("the error shows the kubeconfig, or not what is wrong: %s", text)
		}
	}

	if f.asked() != 1 {
		t.Errorf("Omni was asked %d times", f.asked())
	}

	f.failWrites = false
	f.ready()

	if f.asked() != 1 {
		t.Errorf("Omni was asked %d times", f.asked())
	}
}

// The process dies after the Secret was written and before the status: nothing is issued again.
func TestStatusIsRebuiltFromTheSecret(t *testing.T) {
	f := newFixture(t)
	f.ready()

	want := f.get().Status
	lost := f.get()
	lost.Status = v1alpha1.OmniKubeconfigExportStatus{}
	f.must(f.client.Status().Update(t.Context(), lost))
	f.restart()
	f.ready()

	got := f.get().Status
	for _, status := range []*v1alpha1.OmniKubeconfigExportStatus{&want, &got} {
		for i := range status.Conditions {
			status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
	}

	if diff := cmp.Diff(want, got); diff != "" || f.asked() != 1 {
		t.Errorf("asked %d times; status (-want +got):\n%s", f.asked(), diff)
	}
}

// Somebody who changes the Secret again and again does not make Omni sign for ever.
func TestIssuingIsLimited(t *testing.T) {
	f := newFixture(t)
	f.ready()

	for range 20 {
		f.editSecret("target", func(s *corev1.Secret) { s.Data["kubeconfig"] = []byte("evil") })
		f.run()
	}

	if f.asked() != 5 {
		t.Errorf("Omni was asked %d times", f.asked())
	}

	f.expect(metav1.ConditionFalse, v1alpha1.ReasonIssuingLimited, "the Secret was changed by somebody else")

	f.now = f.now.Add(time.Minute)
	f.ready()
}

// The API server stored the kubeconfig, and its answer was lost: a kubeconfig that is stored is not new at the next
// rotation.
func TestStoredKubeconfigIsNotIssuedAgain(t *testing.T) {
	f := newFixture(t)
	f.loseAnswers = true

	if _, err := f.reconcile(); err == nil {
		t.Fatal("no answer was lost")
	}

	f.loseAnswers = false
	f.ready()

	first := f.get().Status
	f.now = first.NextRotationTime.Time
	// Omni's clock is a real one, and a token of the same second is the same token.
	time.Sleep(1100 * time.Millisecond)
	f.ready()

	if second := f.get().Status; f.asked() != 2 || second.KubeconfigHash == first.KubeconfigHash {
		t.Errorf("asked %d times; status %+v", f.asked(), second)
	}
}
