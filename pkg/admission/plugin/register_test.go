package plugin_test

import (
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/admission"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/plugin"
)

// TestRegister: the names are those of the admission flags, which people have written down.
func TestRegister(t *testing.T) {
	plugins := admission.NewPlugins()
	want := []string{
		"OmniClusterName", "OmniControlPlaneCount", "OmniControllerNamespaces", "OmniReferences", "OmniExportTarget", "OmniRolloutOverride",
		"OmniOwnerReferences",
	}

	if names := plugin.Register(plugins); !slices.Equal(names, want) || len(plugins.Registered()) != len(want) {
		t.Errorf("registered %v, in this order: %v", plugins.Registered(), names)
	}
}
