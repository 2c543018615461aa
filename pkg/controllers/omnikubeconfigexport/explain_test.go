package omnikubeconfigexport

import (
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// What needs a person is a stall with a reason of its own, as on the OmniConnection; the rest waits.
func TestExplainEachClass(t *testing.T) {
	s := &scope{connection: &v1alpha1.OmniConnection{}}

	for class, want := range map[omni.Class]struct {
		reason string
		stalls bool
	}{
		omni.ClassDenied:          {v1alpha1.ReasonPermissionDenied, true},
		omni.ClassUnauthenticated: {v1alpha1.ReasonUnauthenticated, true},
		omni.ClassKeyExpired:      {v1alpha1.ReasonKeyExpired, true},
		omni.ClassKeyInvalid:      {v1alpha1.ReasonKeyInvalid, true},
		omni.ClassTooMuchData:     {v1alpha1.ReasonTooMuchData, true},
		omni.ClassRefused:         {v1alpha1.ReasonRefused, true},
		omni.ClassTLS:             {v1alpha1.ReasonTLSFailed, true},
		omni.ClassGone:            {v1alpha1.ReasonClusterNotInOmni, false},
		omni.ClassTransient:       {v1alpha1.ReasonUnreachable, false},
		omni.ClassUnreachable:     {v1alpha1.ReasonUnreachable, false},
	} {
		if got := explain(class, s, "why"); got.Reason() != want.reason || got.Stalls() != want.stalls {
			t.Errorf("%s: %s, stalls %v", class, got.Reason(), got.Stalls())
		}
	}
}
