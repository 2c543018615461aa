package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Somebody upgrades and rolls back our release with Helm by hand. While that is under way it is left alone; then it is
// put right with one revision, once.
func TestHelmReleaseByHand(t *testing.T) {
	t.Parallel()

	r := newReleasing(t)
	r.apply(r.release())
	r.ready("ohr", "app")

	r.byHand("app", 1, "pending-upgrade")
	r.handled("ohr", "app", "during the upgrade")
	r.waitCondition("ohr", "app", v1alpha1.ConditionReleased, metav1.ConditionFalse, v1alpha1.ReasonLocked)
	r.wantRecords("app", "1 deployed", "2 pending-upgrade")

	r.setRecord("app", 2, "deployed")
	r.setRecord("app", 1, "superseded")
	r.handled("ohr", "app", "after the upgrade")
	r.waitRecords("app", "1 superseded", "2 superseded", "3 deployed")
	r.waitData("app", map[string]string{"chart": "1.0.0", "greeting": "hello"})
	r.ready("ohr", "app")

	// A rollback copies the labels of the revision that it goes back to.
	r.byHand("app", 3, "deployed")
	r.setRecord("app", 3, "superseded")
	r.handled("ohr", "app", "after the rollback")
	r.waitRecords("app", "1 superseded", "2 superseded", "3 superseded", "4 superseded", "5 deployed")
	r.ready("ohr", "app")

	for i := range 3 {
		r.handled("ohr", "app", fmt.Sprintf("again %d", i))
	}

	r.ready("ohr", "app")
	r.wantRecords("app", "1 superseded", "2 superseded", "3 superseded", "4 superseded", "5 deployed")
	r.waitData("app", map[string]string{"chart": "1.0.0", "greeting": "hello"})
}

// byHand makes the next revision as another Helm client does, with a copy of our labels, and changes the object.
func (r *releasing) byHand(name string, from int, status string) {
	r.t.Helper()

	last := r.record(name, from)
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: recordName(name, from+1), Labels: maps.Clone(last.Labels)}, Type: last.Type}
	made.Labels["version"], made.Labels["status"] = strconv.Itoa(from+1), status
	made.Data = map[string][]byte{"release": r.rewritten(last.Data["release"], from+1, status)}

	// The object first: once the record says deployed, the controller may put it right at any moment.
	if _, stderr, err := r.hub.Kubectl(r.t.Context(), "-n", r.apps, "patch", "configmap", name, "-p", `{"data":{"greeting":"by hand"}}`); err != nil {
		r.t.Fatal(err, stderr)
	}

	if _, err := r.hub.Client().CoreV1().Secrets(r.apps).Create(r.t.Context(), made, metav1.CreateOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// setRecord changes the status of a revision.
func (r *releasing) setRecord(name string, number int, status string) {
	r.t.Helper()

	record := r.record(name, number)
	record.Labels["status"] = status
	record.Data["release"] = r.rewritten(record.Data["release"], number, status)

	if _, err := r.hub.Client().CoreV1().Secrets(r.apps).Update(r.t.Context(), record, metav1.UpdateOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

func recordName(name string, number int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, number)
}

func (r *releasing) record(name string, number int) *corev1.Secret {
	r.t.Helper()

	found, err := r.hub.Client().CoreV1().Secrets(r.apps).Get(r.t.Context(), recordName(name, number), metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}

	return found
}

// rewritten is a record of Helm (base64 of gzipped JSON) with another number and status.
func (r *releasing) rewritten(packed []byte, number int, status string) []byte {
	r.t.Helper()

	content, err := base64.StdEncoding.DecodeString(string(packed))
	if err != nil {
		r.t.Fatal(err)
	}

	zipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		r.t.Fatal(err)
	}

	var record map[string]any
	if err := json.NewDecoder(zipped).Decode(&record); err != nil {
		r.t.Fatal(err)
	}

	record["version"] = number
	record["info"].(map[string]any)["status"] = status

	var written bytes.Buffer

	zip := gzip.NewWriter(&written)
	if err := json.NewEncoder(zip).Encode(record); err != nil {
		r.t.Fatal(err)
	}

	if err := zip.Close(); err != nil {
		r.t.Fatal(err)
	}

	return []byte(base64.StdEncoding.EncodeToString(written.Bytes()))
}
