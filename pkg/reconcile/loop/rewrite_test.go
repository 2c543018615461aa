package loop

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func TestRewritePause(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	asking := metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}}

	for _, test := range []struct {
		name string
		meta metav1.ObjectMeta
		ago  time.Duration // since the last write
		want time.Duration
	}{
		{"just written", metav1.ObjectMeta{}, 10 * time.Second, 50 * time.Second},
		{"a minute ago", metav1.ObjectMeta{}, time.Minute, 0},
		{"long ago", metav1.ObjectMeta{}, time.Hour, 0},
		{"asked for", asking, time.Second, 0},
		{"written in the future", metav1.ObjectMeta{}, -6 * time.Hour, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := RewritePause(&v1alpha1.OmniSecretSync{ObjectMeta: test.meta}, now.Add(-test.ago), now); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
