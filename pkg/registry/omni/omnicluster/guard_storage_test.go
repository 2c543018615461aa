package omnicluster

import (
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

func TestGuardedDeletion(t *testing.T) {
	kittest.RunGuard(t, kittest.Guard[*v1alpha1.OmniCluster]{
		Descriptor: Descriptor(true),
		Valid:      valid,
		Confirm: func(o *v1alpha1.OmniCluster) {
			o.Annotations = map[string]string{"omni.texashpc.com/confirm-deletion": o.Name}
		},
	})
}
