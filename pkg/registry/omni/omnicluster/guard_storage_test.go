package omnicluster

import (
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

func TestGuardedDeletion(t *testing.T) {
	kittest.RunGuard(t, kittest.Guard[*omni.OmniCluster]{
		Descriptor: Descriptor(true),
		Valid:      valid,
		Confirm: func(o *omni.OmniCluster) {
			o.Annotations = map[string]string{"omni.texashpc.com/confirm-deletion": o.Name}
		},
	})
}
