package kit

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestRefuseFuture(t *testing.T) {
	for name, tc := range map[string]struct {
		requested string
		current   uint64
		expired   bool
	}{
		"older":         {"41", 42, false},
		"current":       {"42", 42, false},
		"from before":   {"43", 42, true},
		"no number":     {"x", 42, false},
		"empty storage": {"1", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			refusal := refuseFuture(tc.requested, tc.current)
			if refusal == nil {
				if tc.expired {
					t.Error("not refused")
				}

				return
			}

			if !tc.expired || !apierrors.IsResourceExpired(refusal) {
				t.Errorf("refused with %v, want expired: %v", refusal, tc.expired)
			}
		})
	}
}
