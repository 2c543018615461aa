package omnisim

import (
	"context"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/state"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/siderolabs/omni/client/pkg/omni/resources/auth"
	"github.com/siderolabs/omni/client/pkg/omni/resources/common"
	"github.com/siderolabs/omni/client/pkg/omni/resources/infra"
	"github.com/siderolabs/omni/client/pkg/omni/resources/oidc"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"
	"github.com/siderolabs/omni/client/pkg/omni/resources/system"
	"github.com/siderolabs/omni/client/pkg/omni/resources/virtual"

	operator "omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// The verbs of writes, in journal entries and faults.
const (
	verbCreate   = "Create"
	verbUpdate   = "Update"
	verbTeardown = "Teardown"
	verbDestroy  = "Destroy"
)

// checkAccess reports whether the caller's role allows the access. As in Omni, every signed caller reads some types, a
// Reader reads and an Operator writes most types, an Admin alone has a few, and nobody may read the rest
// (ClusterSecrets, Talos and Kubernetes configurations, keys), nor what Omni of this version does not serve.
func checkAccess(ctx context.Context, version *speaks, resourceType resource.Type, verb state.Verb) error {
	switch {
	case !version.serves(resourceType):
		return status.Error(codes.PermissionDenied, "no access is permitted")
	case slices.Contains([]resource.Type{omni.MachineType, siderolink.APIConfigType, siderolink.ConnectionParamsType}, resourceType):
		if err := requireRole(ctx, RoleInfraProvider); err != nil {
			return err
		}
	case isOneOf(signedTypes(), resourceType):
		if err := requireRole(ctx, RoleNone); err != nil {
			return err
		}
	case resourceType == oidc.JWTPublicKeyType && version.from(since10), isOneOf(adminTypes(), resourceType):
		if err := requireRole(ctx, RoleAdmin); err != nil {
			return err
		}
	case resourceType == oidc.JWTPublicKeyType: // before 1.10
		return status.Error(codes.PermissionDenied, "no access is permitted")
	case isOneOf(statusTypes(), resourceType) || isUserManaged(resourceType) || isOneOf(destroyableTypes(), resourceType):
		role := RoleReader
		if !verb.Readonly() {
			role = RoleOperator
		}

		if err := requireRole(ctx, role); err != nil {
			return err
		}
	default:
		return status.Error(codes.PermissionDenied, "no access is permitted")
	}

	return checkVerb(resourceType, verb)
}

// checkVerb refuses writes that no role may do, because the server manages the type.
func checkVerb(resourceType resource.Type, verb state.Verb) error {
	if verb.Readonly() || isUserManaged(resourceType) {
		return nil
	}

	if isOneOf(destroyableTypes(), resourceType) {
		if verb == state.Destroy {
			return nil
		}

		return status.Error(codes.PermissionDenied, "only read and delete access is permitted")
	}

	return status.Error(codes.PermissionDenied, "only read access is permitted")
}

// isUserManaged reports whether callers create, change and destroy a type.
func isUserManaged(resourceType resource.Type) bool {
	return resourceType == operator.MachineInstallDiskConfigType || isOneOf(common.UserManagedResourceTypes, resourceType)
}

func isOneOf(types []resource.Type, resourceType resource.Type) bool {
	return slices.Contains(types, resourceType)
}

// destroyableTypes are created by the server and destroyed by callers.
func destroyableTypes() []resource.Type {
	return []resource.Type{siderolink.LinkType, siderolink.PendingMachineType, oidc.JWTPublicKeyType}
}

// signedTypes may be read by every signed caller, whatever the role.
func signedTypes() []resource.Type {
	return []resource.Type{
		meta.NamespaceType, meta.ResourceDefinitionType,
		omni.FeaturesConfigType, omni.TalosExtensionsType, omni.TalosVersionType, omni.KubernetesVersionType,
		omni.InstallationMediaType, omni.OngoingTaskType, omni.MachineStatusMetricsType, omni.NotificationType,
		omni.ClusterMetricsType, omni.ClusterStatusMetricsType, system.SysVersionType,
		virtual.AdvertisedEndpointsType, virtual.CurrentUserType, virtual.ClusterPermissionsType,
		virtual.QuirksType, virtual.PermissionsType,
	}
}

// adminTypes may be read and written by an Admin only.
func adminTypes() []resource.Type {
	return []resource.Type{
		auth.IdentityType, auth.IdentityLastActiveType, auth.IdentityStatusType, auth.PublicKeyLastActiveType,
		auth.UserType, auth.ServiceAccountStatusType, auth.SAMLLabelRuleType, auth.AccessPolicyType,
		omni.EtcdBackupS3ConfType, omni.InfraMachineBMCConfigType, infra.ProviderType,
	}
}

// statusTypes are written by the server; a Reader may read them.
func statusTypes() []resource.Type {
	return []resource.Type{
		omni.ClusterBootstrapStatusType, omni.ClusterConfigVersionType, omni.ClusterDestroyStatusType,
		omni.ClusterDiagnosticsType, omni.ClusterEndpointType, omni.ClusterKubernetesManifestsStatusType,
		omni.ClusterKubernetesNodesType, omni.ClusterMachineConfigPatchesType, omni.ClusterMachineConfigStatusType,
		omni.ClusterMachineIdentityType, omni.ClusterMachineRequestStatusType, omni.ClusterMachineStatusType,
		omni.ClusterMachineTalosVersionType, omni.ClusterMachineType, omni.ClusterSecretsRotationStatusType,
		omni.ClusterStatusType, omni.ClusterTaintType, omni.ClusterUUIDType, omni.ClusterWorkloadProxyStatusType,
		omni.ControlPlaneStatusType, omni.EtcdBackupOverallStatusType, omni.EtcdBackupStatusType,
		omni.EtcdBackupStoreStatusType, omni.EtcdBackupType, omni.ExposedServiceType, omni.ImagePullRequestType,
		omni.ImagePullStatusType, omni.InfraProviderCombinedStatusType, omni.KernelArgsStatusType,
		omni.KubernetesNodeAuditResultType, omni.KubernetesStatusType, omni.KubernetesUpgradeManifestStatusType,
		omni.KubernetesUpgradeStatusType, omni.LoadBalancerConfigType, omni.LoadBalancerStatusType,
		omni.MachineConfigDiffType, omni.MachineConfigGenOptionsType, omni.MachineExtensionsStatusType,
		omni.MachineExtensionsType, omni.MachinePendingUpdatesType, omni.MachineRequestSetStatusType,
		omni.MachineSetDestroyStatusType, omni.MachineSetStatusType, omni.MachineStatusLinkType,
		omni.MachineStatusSnapshotType, omni.MachineStatusType, omni.MachineUpgradeStatusType,
		omni.MaintenanceConfigStatusType, omni.RedactedClusterMachineConfigType, omni.SchematicConfigurationType,
		omni.TalosUpgradeStatusType, omni.UpgradeRolloutType,
		siderolink.JoinTokenStatusType, siderolink.LinkStatusType, siderolink.NodeUniqueTokenStatusType,
		machineLabelsType(), operator.MachineInstallDiskStatusType, operator.KubernetesHealthCheckStatusType,
		virtual.KubernetesUsageType, virtual.LabelsCompletionType, virtual.SupportType,
	}
}
