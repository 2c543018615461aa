package registry

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/install"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// TestFieldLabels: which field selectors a request may use, by kind.
func TestFieldLabels(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)

	if err := AddFieldLabels(scheme); err != nil {
		t.Fatal(err)
	}

	const cluster, connection = "spec.clusterRef.name", "spec.connectionRef.name"

	tests := map[string][]string{
		"OmniConnection":       nil,
		"OmniCluster":          {connection},
		"OmniControlPlane":     {cluster},
		"OmniWorkers":          {cluster},
		"OmniMachine":          {cluster},
		"OmniKubeconfigExport": {cluster},
		"OmniSecretSync":       {cluster},
		"OmniHelmRelease":      {cluster},
		"OmniRolloutPolicy":    nil,
	}
	for kind, own := range tests {
		allowed := append([]string{"metadata.name", "metadata.namespace"}, own...)

		for _, label := range []string{"metadata.name", "metadata.namespace", cluster, connection, "spec.other"} {
			_, _, err := scheme.ConvertFieldLabel(v1alpha1.SchemeGroupVersion.WithKind(kind), label, "x")
			if want := slices.Contains(allowed, label); (err == nil) != want {
				t.Errorf("%s by %s: %v, want allowed %t", kind, label, err, want)
			}
		}
	}
}
