package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of all kinds.
const GroupName = "omni.texashpc.com"

// SchemeGroupVersion is the group and version of this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

var (
	// SchemeBuilder collects the functions that add this version to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes, addDefaultingFuncs)
	// AddToScheme adds the types and defaults of this version.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Kind qualifies a kind with the group.
func Kind(kind string) schema.GroupKind { return SchemeGroupVersion.WithKind(kind).GroupKind() }

// Resource qualifies a plural resource name with the group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&OmniConnection{}, &OmniConnectionList{},
		&OmniCluster{}, &OmniClusterList{},
		&OmniControlPlane{}, &OmniControlPlaneList{},
		&OmniWorkers{}, &OmniWorkersList{},
		&OmniMachine{}, &OmniMachineList{},
		&OmniKubeconfigExport{}, &OmniKubeconfigExportList{},
		&OmniSecretSync{}, &OmniSecretSyncList{},
		&OmniHelmRelease{}, &OmniHelmReleaseList{},
		&OmniRolloutPolicy{}, &OmniRolloutPolicyList{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)

	return nil
}
