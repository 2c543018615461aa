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
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

func TestRotation(t *testing.T) {
	b := newBench(t)
	b.ready()

	first := b.get().Status
	b.now = first.NextRotationTime.Add(-time.Second)
	b.ready()

	if b.asked() != 1 {
		t.Fatalf("rotated before it was due")
	}

	b.now = first.NextRotationTime.Time
	// Omni's clock is a real one, and a token of the same second is the same token.
	time.Sleep(1100 * time.Millisecond)
	b.ready()

	if second := b.get().Status; b.asked() != 2 || second.KubeconfigHash == first.KubeconfigHash || !second.LastRotationTime.Time.Equal(b.now.Truncate(time.Second)) {
		t.Errorf("asked %d times; status %+v", b.asked(), second)
	}
}

// Omni is down when a renewal is due: the old kubeconfig stays, and the object says so.
func TestRotationWhileOmniIsDown(t *testing.T) {
	b := newBench(t)
	b.ready()

	secret, status := b.secret("target"), b.get().Status
	b.now = status.NextRotationTime.Time
	remove := b.omni.Inject(omnisim.Fault{Method: "Kubeconfig", Code: codes.Unavailable, Message: "connection refused"})

	b.expect(metav1.ConditionTrue, v1alpha1.ReasonRenewalFailing, "valid until "+shownTime(status.ExpirationTime.Time))

	// An object that is Ready is seen by no other alert.
	if err := testutil.CollectAndCompare(b.reconciler.options.Kubeconfigs, strings.NewReader(fmt.Sprintf(`
# HELP omni_kubeconfig_renewal_timestamp_seconds When the kubeconfig that an OmniKubeconfigExport wrote is to be renewed, in seconds since 1970.
# TYPE omni_kubeconfig_renewal_timestamp_seconds gauge
omni_kubeconfig_renewal_timestamp_seconds{name="automation",namespace="team"} %d
`, b.now.Unix())), "omni_kubeconfig_renewal_timestamp_seconds"); err != nil {
		t.Error(err)
	}

	after := b.get().Status
	if diff := cmp.Diff(secret, b.secret("target")); diff != "" || after.KubeconfigHash != status.KubeconfigHash ||
		!after.ExpirationTime.Equal(status.ExpirationTime) || !after.NextRotationTime.Equal(status.NextRotationTime) {
		t.Errorf("status %+v; the Secret changed:\n%s", after, diff)
	}

	remove()
	time.Sleep(1100 * time.Millisecond)

	b.now = b.now.Add(10 * time.Minute)
	b.ready()

	if b.get().Status.KubeconfigHash == status.KubeconfigHash {
		t.Error("not renewed after Omni came back")
	}
}

// Without a valid kubeconfig an Omni that is down is a failure.
func TestExpiredWhileOmniIsDown(t *testing.T) {
	b := newBench(t)
	b.ready()

	status := b.get().Status
	b.now = status.ExpirationTime.Time
	b.omni.Inject(omnisim.Fault{Method: "Kubeconfig", Code: codes.Unavailable, Message: "connection refused"})
	b.expect(metav1.ConditionFalse, v1alpha1.ReasonUnreachable)

	if b.secret("target") == nil || b.get().Status.KubeconfigHash != status.KubeconfigHash {
		t.Error("the old Secret or status was not kept")
	}
}

// Omni issues, and then the Secret cannot be written: the same kubeconfig is written later.
func TestWhatWasIssuedIsNotLost(t *testing.T) {
	b := newBench(t)
	b.failWrites = true

	for range 4 {
		if _, err := b.reconcile(); err == nil {
			t.Fatal("a failed write is no error")
		} else if text := err.Error(); !errors.Is(err, errDiskFull) || !strings.Contains(text, errDiskFull.Error()) || strings.Contains(text, "token: ey") {
			t.Errorf("the error shows the kubeconfig, or not what is wrong: %s", text)
		}
	}

	if b.asked() != 1 {
		t.Errorf("Omni was asked %d times", b.asked())
	}

	b.failWrites = false
	b.ready()

	if b.asked() != 1 {
		t.Errorf("Omni was asked %d times", b.asked())
	}
}

// The process dies after the Secret was written and before the status: nothing is issued again.
func TestStatusIsRebuiltFromTheSecret(t *testing.T) {
	b := newBench(t)
	b.ready()

	want := b.get().Status
	lost := b.get()
	lost.Status = v1alpha1.OmniKubeconfigExportStatus{}
	b.must(b.client.Status().Update(t.Context(), lost))
	b.restart()
	b.ready()

	got := b.get().Status
	for _, status := range []*v1alpha1.OmniKubeconfigExportStatus{&want, &got} {
		for i := range status.Conditions {
			status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
	}

	if diff := cmp.Diff(want, got); diff != "" || b.asked() != 1 {
		t.Errorf("asked %d times; status (-want +got):\n%s", b.asked(), diff)
	}
}

// Somebody who changes the Secret again and again does not make Omni sign for ever.
func TestIssuingIsLimited(t *testing.T) {
	b := newBench(t)
	b.ready()

	for range 20 {
		b.editSecret("target", func(s *corev1.Secret) { s.Data["kubeconfig"] = []byte("evil") })
		b.run()
	}

	if b.asked() != 5 {
		t.Errorf("Omni was asked %d times", b.asked())
	}

	b.expect(metav1.ConditionFalse, v1alpha1.ReasonIssuingLimited, "the Secret was changed by somebody else")

	b.now = b.now.Add(time.Minute)
	b.ready()
}

// The API server stored the kubeconfig, and its answer was lost: a kubeconfig that is stored is not new at the next
// rotation.
func TestStoredKubeconfigIsNotIssuedAgain(t *testing.T) {
	b := newBench(t)
	b.loseAnswers = true

	if _, err := b.reconcile(); err == nil {
		t.Fatal("no answer was lost")
	}

	b.loseAnswers = false
	b.ready()

	first := b.get().Status
	b.now = first.NextRotationTime.Time
	// Omni's clock is a real one, and a token of the same second is the same token.
	time.Sleep(1100 * time.Millisecond)
	b.ready()

	if second := b.get().Status; b.asked() != 2 || second.KubeconfigHash == first.KubeconfigHash {
		t.Errorf("asked %d times; status %+v", b.asked(), second)
	}
}
