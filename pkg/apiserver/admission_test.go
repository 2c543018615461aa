package apiserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAdmissionOrder(t *testing.T) {
	options := NewAdmissionOptions()

	want := []string{
		"NamespaceLifecycle", "MutatingAdmissionPolicy", "MutatingAdmissionWebhook",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook",
		"OmniClusterName", "OmniControlPlaneCount", "OmniControllerNamespaces", "OmniReferences", "OmniExportTarget", "OmniRolloutOverride", "OmniOwnerReferences",
	}
	if diff := cmp.Diff(want, options.RecommendedPluginOrder); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}

	// The check of the hub decides about it (package startup).
	if options.DefaultOffPlugins.Has("MutatingAdmissionPolicy") {
		t.Error("the mutating policies of the hub are off")
	}

	if errs := options.Validate(); len(errs) > 0 {
		t.Errorf("options: %v", errs)
	}
}
