package v1alpha1

const (
	// Finalizer keeps an object until the controller has cleaned up behind it.
	Finalizer = GroupName + "/finalizer"
	// InUseFinalizer keeps a Secret that the controller still needs, such as the key of a connection that an
	// OmniCluster uses; and what gives the controller its rights and its lease in a namespace that is being deleted.
	InUseFinalizer = GroupName + "/in-use"
	// KubeconfigInUseFinalizer keeps the Secret of a kubeconfig that an OmniSecretSync or OmniHelmRelease needs to
	// clean up in its workload cluster.
	KubeconfigInUseFinalizer = GroupName + "/kubeconfig-in-use"

	// AnnotationReconcileRequestedAt asks for a reconcile now, whenever its value changes.
	AnnotationReconcileRequestedAt = GroupName + "/reconcile-requested-at"
	// AnnotationFluxRequestedAt is Flux's name for the same request.
	AnnotationFluxRequestedAt = "reconcile.fluxcd.io/requestedAt"
	// AnnotationConfirmDeletion must equal the object's name before a guarded object can be deleted: by anybody an OmniCluster with
	// requireConfirmation, a used OmniConnection or an OmniRolloutPolicy that holds changes; by the garbage collector any object.
	AnnotationConfirmDeletion = GroupName + "/confirm-deletion"
	// AnnotationRecreate allows a cluster that Omni no longer has to be made again, in the Omni that had it: its value
	// is the old status.omniClusterID then. If Omni has lost only the cluster's control plane, that is made again with the value
	// RecreateControlPlanePrefix and status.controlPlaneSet.created.
	AnnotationRecreate = GroupName + "/recreate"
	// RecreateControlPlanePrefix begins a value of AnnotationRecreate that is about a control plane.
	RecreateControlPlanePrefix = "control-plane@"
	// AnnotationAllowedEndpoints is for the Secret of a service account key: the endpoints that the key may be used
	// with, as URLs that are separated by commas. Scheme, host and port have to be those of spec.endpoint.
	AnnotationAllowedEndpoints = GroupName + "/allowed-endpoints"
	// AnnotationPreviousHub is for an OmniConnection, or for the Secret of a kubeconfig that belongs to no OmniCluster:
	// the ID of the hub that is gone and whose objects were restored here. What is reached through it and carries
	// that hub's mark is taken over by this hub. See MarkHub.
	AnnotationPreviousHub = GroupName + "/previous-hub"
	// AnnotationRolloutOverride is for an OmniCluster: lets the changes begin now that wait in an OmniRolloutPolicy. Its
	// value is their status.rollout.hash, a space, and a reason of at least 10 characters. Only who may override
	// omniclusters may set it.
	AnnotationRolloutOverride = GroupName + "/rollout-override"
	// AnnotationTimeZone is for an OmniCluster: the time zone of its windows in an OmniRolloutPolicy.
	AnnotationTimeZone = GroupName + "/time-zone"
	// AnnotationPromotePrefix, with the name of a stage behind it, is for an OmniRolloutPolicy: lets the stage begin until
	// the time that is its value (RFC 3339), whether the earlier stages have qualified a change or not.
	AnnotationPromotePrefix = GroupName + "/promote-"
	// AnnotationReplaceRevision allows a revision to be replaced that a later state of the OmniHelmRelease made than the
	// one that the API has now, as after the restore of a snapshot. Its value is the number of the revision.
	AnnotationReplaceRevision = GroupName + "/replace-revision"
	// AnnotationAcceptCluster allows a kubeconfig to lead to another cluster than before. Its value is the
	// new cluster's ID.
	AnnotationAcceptCluster = GroupName + "/accept-cluster"
)

// FieldManagerByHand is the field manager that commands in messages write with, and the pages tell people to use: Flux takes
// fields away that Git does not set, if the name of their manager begins with kubectl, as that of every command of kubectl does.
const FieldManagerByHand = "by-hand"

const (
	// LabelProtected is for Secrets that no object may use or copy, whatever it names; with ProtectedValue.
	LabelProtected = GroupName + "/protected"
	// ProtectedValue is the value of LabelProtected that counts.
	ProtectedValue = "true"
)

// The ownership mark: annotations that the controller writes on the Cluster in Omni. The UID and the hub
// decide who owns it; the others are information for people.
const (
	// MarkHub is the ID of the hub whose object the owner is: the UID of the kube-system Namespace of the cluster in
	// which the object is written, or what --hub-id says. Objects that are restored into a second hub keep their UIDs;
	// this tells the hubs apart. A mark without it is from before it was written.
	MarkHub = GroupName + "/hub-id"
	// MarkOwnerUID is the UID of the OmniCluster that owns the cluster.
	MarkOwnerUID = GroupName + "/owner-uid"
	// MarkOwnerNamespace is the namespace of that OmniCluster.
	MarkOwnerNamespace = GroupName + "/owner-namespace"
	// MarkOwnerName is the name of that OmniCluster.
	MarkOwnerName = GroupName + "/owner-name"
	// MarkManagementCluster is the name of the management cluster, where one was configured.
	MarkManagementCluster = GroupName + "/management-cluster"
	// MarkApplied lists the labels, annotations and settings that the documents put on a resource in Omni, on the Cluster and
	// others: these go when the documents drop them, and those of others stay.
	MarkApplied = GroupName + "/applied"
)
