package clusteraccess

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A cluster that has been silent for long is asked rarely, and all who wait for it are woken, once, when it answers.
func TestRetryGrowsWithTheOutage(t *testing.T) {
	s, woken := newSilent(t), make(chan string, 10)

	after := func(requester string) time.Duration {
		return s.cluster.retryAfter(requester, func() { woken <- requester })
	}

	if got := after("early"); got != firstRetry {
		t.Errorf("a cluster that answers: %s", got)
	}

	if _, err := Read(t.Context(), s.cluster, func(ctx context.Context) (*corev1.Secret, error) {
		return s.cluster.Core().Secrets("apps").Get(ctx, "pull", metav1.GetOptions{})
	}); err == nil {
		t.Fatal("it did not hang")
	}

	began := s.clock.Load()

	for _, step := range []struct{ outage, want time.Duration }{
		{0, firstRetry}, {time.Minute, firstRetry}, {10 * time.Minute, time.Minute}, {20 * time.Minute, longestRetry}, {24 * time.Hour, longestRetry},
	} {
		s.clock.Store(began + int64(step.outage.Seconds()))

		if got := after("a"); got != step.want {
			t.Errorf("after %s: %s, want %s", step.outage, got, step.want)
		}

		// A probe that fails does not begin the outage anew.
		_, _ = s.cluster.Identify(t.Context())
		s.probed()
	}

	after("b")
	s.clock.Add(int64(badFor.Seconds()) + 1)
	s.comesBack()

	if got := []string{<-woken, <-woken}; !slices.Contains(got, "a") || !slices.Contains(got, "b") || len(woken) != 0 {
		t.Errorf("woken: %v, and %d more", got, len(woken))
	}

	if got := after("a"); got != firstRetry {
		t.Errorf("it answers again: %s", got)
	}
}
