package omnisecretsync

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// TestAfterAnotherClusterWasAccepted: what is at the target in the new cluster was never written by this object, whatever it wrote
// in the former one.
func TestAfterAnotherClusterWasAccepted(t *testing.T) {
	for name, test := range map[string]struct {
		labels map[string]string
		adopt  bool
		says   string // empty: it is written
	}{
		"somebody's":                      {nil, false, "spec.adopt"},
		"another object's":                {map[string]string{labelOwnerUID: "another"}, false, "another"},
		"another object's, to be adopted": {map[string]string{labelOwnerUID: "another"}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMover(t)
			m.to("apps", "a")
			m.settle()
			m.sync.Spec.Adopt, m.sync.Status.ClusterID = test.adopt, "the former cluster"
			m.store.secrets["apps/a"] = &corev1.Secret{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "a", UID: "other", ResourceVersion: "7", Labels: test.labels},
				Data:       map[string][]byte{"x": []byte("theirs")},
			}

			opened := m.opened()
			opened.ClusterID = "the new cluster"
			s := &scope{sync: m.sync.DeepCopy(), want: wanted(t), opened: opened}

			outcome, err := m.r.write(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}

			if refused := outcome.Reason() == v1alpha1.ReasonForeignTarget; refused != (test.says != "") ||
				!strings.Contains(outcome.Message(), test.says) || strings.Contains(outcome.Message(), "was written by this object") {
				t.Errorf("%s: %s", outcome.Reason(), outcome.Message())
			}
		})
	}
}

// TestDeletedBeforeTheUpdate: a copy that somebody deletes between our look and our update is made again at once; the namespace is
// there.
func TestDeletedBeforeTheUpdate(t *testing.T) {
	m := newMover(t)
	m.to("apps", "a")
	m.settle()

	opened := m.opened()
	opened.Cluster = clusterAt(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut {
			m.store.ServeHTTP(w, r)

			return
		}

		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"secrets \"a\" not found"}`)
	})
	s := &scope{sync: m.sync.DeepCopy(), want: wanted(t), opened: opened}
	s.want.data = map[string][]byte{"rotated": []byte("1")}
	s.sync.Status.LastSyncTime = nil // it was written long ago

	outcome, err := m.r.write(t.Context(), s)
	if err != nil || outcome.Reason() != v1alpha1.ReasonConflict || outcome.After() == 0 || outcome.Stalls() {
		t.Errorf("%s: %s (in %s), %v", outcome.Reason(), outcome.Message(), outcome.After(), err)
	}
}
