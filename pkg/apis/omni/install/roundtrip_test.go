package install

import (
	"math/rand"
	"testing"

	apifuzzer "k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Every kind survives encoding as JSON, also by the codecs of a server.
func TestRoundTrip(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)

	codecs := runtimeserializer.NewCodecFactory(scheme)
	fill := apifuzzer.FuzzerFor(apifuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, fuzzerFuncs), rand.NewSource(7), codecs)

	// Scale is Kubernetes' own type.
	foreign := map[schema.GroupVersionKind]bool{}

	for gvk := range scheme.AllKnownTypes() {
		if gvk.Group != v1alpha1.GroupName {
			foreign[gvk] = true
		}
	}

	t.Run("internal", func(t *testing.T) {
		roundtrip.RoundTripTypesWithoutProtobuf(t, scheme, codecs, fill, foreign)
	})
	t.Run("v1alpha1", func(t *testing.T) {
		roundtrip.RoundTripExternalTypesWithoutProtobuf(t, scheme, codecs, fill, foreign)
	})
}

// kinds are all kinds that the group has; each has a list as well.
func kinds() []string {
	return []string{
		"OmniConnection", "OmniCluster", "OmniControlPlane", "OmniWorkers", "OmniMachine",
		"OmniKubeconfigExport", "OmniSecretSync", "OmniHelmRelease", "OmniRolloutPolicy",
	}
}

func TestInstallRegistersEveryKind(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)

	internal := schema.GroupVersion{Group: v1alpha1.GroupName, Version: runtime.APIVersionInternal}

	for _, version := range []schema.GroupVersion{internal, v1alpha1.SchemeGroupVersion} {
		for _, kind := range kinds() {
			for _, name := range []string{kind, kind + "List"} {
				if !scheme.Recognizes(version.WithKind(name)) {
					t.Errorf("%s is not registered", version.WithKind(name))
				}
			}
		}
	}

	if got := scheme.PrioritizedVersionsForGroup(v1alpha1.GroupName); len(got) != 1 || got[0] != v1alpha1.SchemeGroupVersion {
		t.Errorf("served versions: %v", got)
	}

	for _, version := range []string{"v1", runtime.APIVersionInternal} {
		gvk := schema.GroupVersionKind{Group: "autoscaling", Version: version, Kind: "Scale"}
		if !scheme.Recognizes(gvk) {
			t.Errorf("%s is not registered", gvk)
		}
	}
}
