package helmlive

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// A Helm whose clock is behind writes a time that has passed long ago. The API server notes when it did, and by whom the record is
// changed after that.
func TestALockCountsFromTheServersClock(t *testing.T) {
	const aSecondOn = 1100 * time.Millisecond

	r := newRelease(t)
	r.want(helm.ActionInstall, chartserver.ConfigMapChart("demo", "1.0.0"), "")

	records := cluster.Client().CoreV1().Secrets(r.namespace)

	record, err := records.Get(t.Context(), "sh.helm.release.v1.demo.v1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	time.Sleep(aSecondOn)

	record.Labels["status"] = string(helm.StatusPendingUpgrade)
	record.Labels["modifiedAt"] = strconv.FormatInt(time.Now().Add(-time.Hour).Unix(), 10)

	if record, err = records.Update(t.Context(), record, metav1.UpdateOptions{FieldManager: "helm"}); err != nil {
		t.Fatal(err)
	}

	locked := r.observe().Latest().Written
	if !locked.After(record.CreationTimestamp.Time) {
		t.Fatalf("a record that was made at %s and locked since is locked from %s", record.CreationTimestamp, locked)
	}

	time.Sleep(aSecondOn)

	record.Annotations = map[string]string{"backup": "taken"}
	if _, err = records.Update(t.Context(), record, metav1.UpdateOptions{FieldManager: "backup"}); err != nil {
		t.Fatal(err)
	}

	if again := r.observe().Latest().Written; !again.Equal(locked) {
		t.Errorf("it is locked from %s, and after a backup from %s", locked, again)
	}
}
