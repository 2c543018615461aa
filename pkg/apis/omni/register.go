package omni

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of all eight kinds.
const GroupName = "omni.texashpc.com"

// SchemeGroupVersion is the group and version of the hub types.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}

var (
	// SchemeBuilder collects the functions that add the hub types to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds the hub types to a scheme.
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
	)

	return nil
}
