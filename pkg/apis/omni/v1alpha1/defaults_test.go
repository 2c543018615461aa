package v1alpha1_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Only these fields have defaults; in particular, effective names are never written into a spec. A false is always
// written: otherwise a manifest in Git with a false would differ from the stored object.
func TestDefaults(t *testing.T) {
	_, factory := codecs(t)
	codec := factory.LegacyCodec(v1alpha1.SchemeGroupVersion)

	const object = `{"kind":%q,"apiVersion":"omni.texashpc.com/v1alpha1","metadata":{"name":"a"},"spec":%s%s}` + "\n"

	for _, tc := range []struct{ name, kind, spec, want string }{
		{"connection", "OmniConnection",
			`{"endpoint":"e","auth":{"serviceAccountSecretRef":{"name":"s"}}}`,
			`{"endpoint":"e","auth":{"serviceAccountSecretRef":{"name":"s","key":"serviceAccountKey"}},"insecureSkipTLSVerify":false}`},
		{"connection, key set", "OmniConnection",
			`{"endpoint":"e","auth":{"serviceAccountSecretRef":{"name":"s","key":"k"}}}`,
			`{"endpoint":"e","auth":{"serviceAccountSecretRef":{"name":"s","key":"k"}},"insecureSkipTLSVerify":false}`},
		{"cluster", "OmniCluster",
			`{"connectionRef":{"name":"o"},"kubernetes":{"version":"v1","manifests":[{"name":"m"}]},"talos":{"version":"v1"}}`,
			`{"connectionRef":{"name":"o"},"kubernetes":{"version":"v1","manifests":[{"name":"m"}]},"talos":{"version":"v1"},` +
				`"features":{"enableWorkloadProxy":false,"useEmbeddedDiscoveryService":false,"diskEncryption":false},"deletePolicy":{"orphan":false,"destroyMachines":false},"adopt":false,"changePolicy":"Apply","syncInterval":"5m","suspend":false}`},
		{"cluster, all set", "OmniCluster",
			`{"connectionRef":{"name":"o"},"kubernetes":{"version":"v1","manifests":[{"name":"m","mode":"one-time"}]},"talos":{"version":"v1"},` +
				`"changePolicy":"Observe","syncInterval":"1h"}`,
			`{"connectionRef":{"name":"o"},"kubernetes":{"version":"v1","manifests":[{"name":"m","mode":"one-time"}]},"talos":{"version":"v1"},` +
				`"features":{"enableWorkloadProxy":false,"useEmbeddedDiscoveryService":false,"diskEncryption":false},"deletePolicy":{"orphan":false,"destroyMachines":false},"adopt":false,"changePolicy":"Observe","syncInterval":"1h","suspend":false}`},
		{"control plane", "OmniControlPlane", `{"clusterRef":{"name":"c"}}`, `{"clusterRef":{"name":"c"}}`},
		{"workers", "OmniWorkers", `{"clusterRef":{"name":"c"}}`, `{"clusterRef":{"name":"c"}}`},
		{"machine", "OmniMachine", `{"clusterRef":{"name":"c"}}`, `{"clusterRef":{"name":"c"},"locked":false}`},
		{"export", "OmniKubeconfigExport",
			`{"clusterRef":{"name":"c"},"targetSecretRef":{"name":"s"},"serviceAccount":{"user":"u","groups":["g"]},"ttl":"1h","deletionPolicy":"Orphan"}`,
			`{"clusterRef":{"name":"c"},"targetSecretRef":{"name":"s","key":"kubeconfig"},"serviceAccount":{"user":"u","groups":["g"],"allowClusterAdmin":false},"ttl":"1h",` +
				`"deletionPolicy":"Orphan","format":"Kubeconfig","adopt":false}`},
		{"export, deletion policy unset", "OmniKubeconfigExport",
			`{"clusterRef":{"name":"c"},"targetSecretRef":{"name":"s"},"serviceAccount":{"user":"u","groups":["g"]},"ttl":"1h"}`,
			`{"clusterRef":{"name":"c"},"targetSecretRef":{"name":"s","key":"kubeconfig"},"serviceAccount":{"user":"u","groups":["g"],"allowClusterAdmin":false},"ttl":"1h",` +
				`"deletionPolicy":"Delete","format":"Kubeconfig","adopt":false}`},
		{"sync", "OmniSecretSync",
			`{"clusterRef":{"name":"c"},"kubeconfigSecretRef":{"name":"k"},"sourceSecretRef":{"name":"s"},"targetSecretRef":{"name":"t","namespace":"n"},` +
				`"deletionPolicy":"Orphan"}`,
			`{"clusterRef":{"name":"c"},"kubeconfigSecretRef":{"name":"k","key":"kubeconfig"},"sourceSecretRef":{"name":"s"},` +
				`"targetSecretRef":{"name":"t","namespace":"n"},"createNamespace":false,"adopt":false,"deletionPolicy":"Orphan"}`},
		{"sync, deletion policy unset", "OmniSecretSync",
			`{"clusterRef":{"name":"c"},"kubeconfigSecretRef":{"name":"k"},"sourceSecretRef":{"name":"s"},"targetSecretRef":{"name":"t","namespace":"n"}}`,
			`{"clusterRef":{"name":"c"},"kubeconfigSecretRef":{"name":"k","key":"kubeconfig"},"sourceSecretRef":{"name":"s"},` +
				`"targetSecretRef":{"name":"t","namespace":"n"},"createNamespace":false,"adopt":false,"deletionPolicy":"Delete"}`},
		{"release", "OmniHelmRelease",
			`{"clusterRef":{"name":"c"},"kubeconfigSecretRef":{"name":"k"},` +
				`"chart":{"chart":"x","valuesFrom":[{"kind":"Secret","name":"v"}],"verify":{"keyringSecretRef":{"name":"r"}}}}`,
			`{"clusterRef":{"name":"c"},"kubeconfigSecretRef":{"name":"k","key":"kubeconfig"},"namespace":"default","createNamespace":false,` +
				`"chart":{"chart":"x","valuesFrom":[{"kind":"Secret","name":"v"}],` +
				`"verify":{"keyringSecretRef":{"name":"r","key":"keyring"}}},"wait":false,"waitForJobs":false,"timeout":"5m",` +
				`"disableHooks":false,"skipCRDs":false,"maxHistory":10,"takeOwnership":false,"interval":"10m","retries":3,` +
				`"driftDetection":{"mode":"Disabled"},"suspend":false,"test":{"enable":false,"ignoreFailures":false},"deletionPolicy":"Uninstall"}`},
		{"rollout policy", "OmniRolloutPolicy",
			`{"clusterSelector":{},"stages":[{"name":"all","maxConcurrent":"10%"}]}`,
			`{"clusterSelector":{},"stages":[{"name":"all","maxConcurrent":"10%"}],` +
				`"arrivalTime":"15m","maxFailed":0,"progressDeadline":"2h","hold":false}`},
		{"release, numbers set to 0", "OmniHelmRelease",
			`{"clusterRef":{"name":"c"},"kubeconfigSecretRef":{"name":"k","key":"x"},"namespace":"n","chart":{"chart":"x"},"timeout":"1m","maxHistory":0,` +
				`"interval":"1h","retries":0,"driftDetection":{"mode":"Warn"},"deletionPolicy":"Orphan"}`,
			`{"clusterRef":{"name":"c"},"kubeconfigSecretRef":{"name":"k","key":"x"},"namespace":"n","createNamespace":false,"chart":{"chart":"x"},"wait":false,` +
				`"waitForJobs":false,"timeout":"1m","disableHooks":false,"skipCRDs":false,"maxHistory":0,"takeOwnership":false,` +
				`"interval":"1h","retries":0,"driftDetection":{"mode":"Warn"},"suspend":false,"test":{"enable":false,"ignoreFailures":false},` +
				`"deletionPolicy":"Orphan"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			decoded, err := runtime.Decode(codec, fmt.Appendf(nil, object, tc.kind, tc.spec, ""))
			if err != nil {
				t.Fatal(err)
			}

			got, err := runtime.Encode(codec, decoded)
			if err != nil {
				t.Fatal(err)
			}

			status := `,"status":{}`
			if tc.kind == "OmniRolloutPolicy" { // its numbers are there from the beginning, for kubectl wait
				status = `,"status":{"failedCount":0,"held":0}`
			}

			if diff := cmp.Diff(fmt.Sprintf(object, tc.kind, tc.want, status), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
