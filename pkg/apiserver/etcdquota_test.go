package apiserver_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
)

// TestEtcdQuotaReached: a refused write says why and what to do; reads and deletions go on.
func TestEtcdQuotaReached(t *testing.T) {
	s := startServer(t, withEtcd(embeddedetcd.Quota(4<<20)))
	connections := s.client.OmniV1alpha1().OmniConnections("default")

	var err error

	for i := 0; err == nil; i++ {
		connection := &v1alpha1.OmniConnection{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i), Annotations: map[string]string{"filler": strings.Repeat("x", 200_000)}},
			Spec: v1alpha1.OmniConnectionSpec{
				Endpoint: "https://omni.example.com",
				Auth:     v1alpha1.OmniConnectionAuth{ServiceAccountSecretRef: v1alpha1.SecretKeyReference{Name: "key"}},
			},
		}
		_, err = connections.Create(t.Context(), connection, metav1.CreateOptions{})
	}

	for _, words := range []string{"the database of omni-apiserver is full", "--etcd-quota-backend-bytes"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %q in it", err, words)
		}
	}

	if _, err := connections.Get(t.Context(), "c0", metav1.GetOptions{}); err != nil {
		t.Errorf("read: %v", err)
	}

	if err := connections.Delete(t.Context(), "c0", metav1.DeleteOptions{}); err != nil {
		t.Errorf("delete: %v", err)
	}
}
