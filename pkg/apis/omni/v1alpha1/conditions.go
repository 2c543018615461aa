package v1alpha1

// Condition types of every kind.
const (
	// ConditionReady: The object is fully done: its current generation is in effect and what it stands for works.
	ConditionReady = "Ready"
	// ConditionReconciling: Work is under way or waited for. Present only while true.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: Nothing goes on until somebody acts; it is still retried at the interval. Present only while true.
	ConditionStalled = "Stalled"
)

// Condition types of several kinds.
const (
	// ConditionSynced: Omni has what the objects say (OmniCluster), Omni has this generation (OmniControlPlane,
	// OmniWorkers, OmniMachine), or the copy in the workload cluster is as the source (OmniSecretSync).
	ConditionSynced = "Synced"
	// ConditionSuspended: spec.suspend is set (OmniCluster, OmniHelmRelease). Present only while true.
	ConditionSuspended = "Suspended"
	// ConditionDeletionBlocked: The deletion will not end soon; the message names what blocks it (OmniConnection,
	// OmniCluster, OmniSecretSync, OmniHelmRelease). Present only while true.
	ConditionDeletionBlocked = "DeletionBlocked"
)

// Condition types of OmniConnection.
const (
	// ConditionCredentialsFound: The service account key was found and has the right form.
	ConditionCredentialsFound = "CredentialsFound"
	// ConditionReachable: Omni answers and accepts the key.
	ConditionReachable = "Reachable"
	// ConditionOmniVersion: Omni serves what is needed; the reason says whether this version of Omni was tried. It never keeps
	// the connection from being Ready. Absent while the version is not known.
	ConditionOmniVersion = "OmniVersion"
)

// Condition types of OmniCluster.
const (
	// ConditionConnectionReady: The connection can be used.
	ConditionConnectionReady = "ConnectionReady"
	// ConditionAssembled: The documents of the cluster are complete and fit together.
	ConditionAssembled = "Assembled"
	// ConditionValidated: The rules of Omni's client library accept the template. An Omni of another version may have other rules: what it
	// says is in Synced.
	ConditionValidated = "Validated"
	// ConditionPlanned: The changes are known.
	ConditionPlanned = "Planned"
	// ConditionAvailable: Omni says that the cluster runs.
	ConditionAvailable = "Available"
)

// Condition types of the kinds that an OmniRolloutPolicy is about.
const (
	// ConditionHeld: Changes wait for their turn in an OmniRolloutPolicy (OmniCluster, OmniControlPlane, OmniWorkers,
	// OmniMachine). Present only while true; Ready stays as it was.
	ConditionHeld = "Held"
	// ConditionRolloutStopped: More clusters failed than may; nothing else begins (OmniRolloutPolicy). Present only
	// while true.
	ConditionRolloutStopped = "RolloutStopped"
)

// Condition types of OmniControlPlane, OmniWorkers, OmniMachine.
const (
	// ConditionAccepted: The cluster exists and counts this document.
	ConditionAccepted = "Accepted"
	// ConditionMachinesReady: The machines of the set are ready.
	ConditionMachinesReady = "MachinesReady"
)

// Condition types of OmniKubeconfigExport.
const (
	// ConditionSourceReady: The cluster and its connection can be used.
	ConditionSourceReady = "SourceReady"
	// ConditionIssued: Omni issued the kubeconfig.
	ConditionIssued = "Issued"
	// ConditionWritten: The Secret holds the kubeconfig.
	ConditionWritten = "Written"
)

// Condition types of OmniSecretSync, OmniHelmRelease.
const (
	// ConditionConnected: The workload cluster answers and is the right one.
	ConditionConnected = "Connected"
)

// Condition types of OmniSecretSync.
const (
	// ConditionSourceFound: The source Secret was found.
	ConditionSourceFound = "SourceFound"
)

// Condition types of OmniHelmRelease.
const (
	// ConditionChartFetched: The chart is here.
	ConditionChartFetched = "ChartFetched"
	// ConditionValuesResolved: All values were read.
	ConditionValuesResolved = "ValuesResolved"
	// ConditionReleased: The release is deployed as wanted.
	ConditionReleased = "Released"
	// ConditionTested: The chart's tests passed.
	ConditionTested = "Tested"
	// ConditionDrifted: Live objects differ from the release.
	ConditionDrifted = "Drifted"
)

// Reasons of every kind.
const (
	// ReasonPending: The controller has not looked at the object yet.
	ReasonPending = "Pending"
	// ReasonBlocked: An earlier condition has to become true first.
	ReasonBlocked = "Blocked"
	// ReasonSucceeded: All is done.
	ReasonSucceeded = "Succeeded"
	// ReasonSuspended: spec.suspend is set.
	ReasonSuspended = "Suspended"
	// ReasonProgressing: Work is under way.
	ReasonProgressing = "Progressing"
	// ReasonDeleting: The object is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonError: Something failed; it is tried again with growing pauses.
	ReasonError = "Error"
)

// Reasons of several kinds.
const (
	// ReasonConnected: Omni, or the workload cluster, answers and accepts the credentials.
	ReasonConnected = "Connected"
	// ReasonUnreachable: Omni does not answer.
	ReasonUnreachable = "Unreachable"
	// ReasonTLSFailed: The certificate of Omni, or of a chart repository, is not accepted.
	ReasonTLSFailed = "TLSFailed"
	// ReasonUnauthenticated: Omni does not accept the key: it was revoked, or belongs to another Omni, or the clock of
	// omni-controller is more than 5 minutes from Omni's. Or the workload cluster does not accept the kubeconfig.
	ReasonUnauthenticated = "Unauthenticated"
	// ReasonPermissionDenied: The service account's role in Omni is too low.
	ReasonPermissionDenied = "PermissionDenied"
	// ReasonKeyExpired: The service account key has expired.
	ReasonKeyExpired = "KeyExpired"
	// ReasonConnectionNotFound: The OmniConnection does not exist.
	ReasonConnectionNotFound = "ConnectionNotFound"
	// ReasonConnectionNotReady: The OmniConnection cannot be used now.
	ReasonConnectionNotReady = "ConnectionNotReady"
	// ReasonMirrorNotSynced: The local copy of Omni's state is not complete, or does not show the last writes yet.
	ReasonMirrorNotSynced = "MirrorNotSynced"
	// ReasonClusterNotFound: The OmniCluster does not exist.
	ReasonClusterNotFound = "ClusterNotFound"
	// ReasonClusterNotInOmni: The OmniCluster has no cluster of its own in Omni (yet), or this hub has not seen it there yet.
	ReasonClusterNotInOmni = "ClusterNotInOmni"
	// ReasonNotOwned: The cluster in Omni was not made by this object, or not by the export's OmniCluster.
	ReasonNotOwned = "NotOwned"
	// ReasonOwnedByOtherHub: What is there carries the mark of another hub: of this very object, which was copied from
	// there, or of what spec.adopt alone does not take over. It is read, and never written or removed.
	ReasonOwnedByOtherHub = "OwnedByOtherHub"
	// ReasonRemoteClusterReplaced: The cluster in Omni carries the mark of the OmniCluster, but is not the one it made.
	ReasonRemoteClusterReplaced = "RemoteClusterReplaced"
	// ReasonValueNotFound: A ConfigMap or Secret that the spec takes a value from, or its key, does not exist.
	ReasonValueNotFound = "ValueNotFound"
	// ReasonUpToDate: Omni, or the copy in the workload cluster, is as the objects say.
	ReasonUpToDate = "UpToDate"
	// ReasonRefused: Omni, or the workload cluster, refused a change.
	ReasonRefused = "Refused"
	// ReasonConflict: Omni's state, or the target, changed meanwhile and it is tried anew; or the target (a Secret, a
	// release) belongs to another object, or somebody keeps changing it.
	ReasonConflict = "Conflict"
	// ReasonTargetDeleting: The target Secret is being deleted.
	ReasonTargetDeleting = "TargetDeleting"
	// ReasonNamespaceNotAllowed: The target's namespace is not one to which exports may write (--export-namespaces).
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
)

// Reasons of all kinds that name Secrets.
const (
	// ReasonSecretProtected: The Secret is one that no object may use: of the operator's installation, of a ServiceAccount,
	// of Helm, a bootstrap token, or with the label omni.texashpc.com/protected.
	ReasonSecretProtected = "SecretProtected"
)

// Reasons of OmniConnection.
const (
	// ReasonKeyFound: The Secret holds a well-formed key.
	ReasonKeyFound = "KeyFound"
	// ReasonSecretNotFound: The Secret does not exist.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretKeyNotFound: The Secret has no such key.
	ReasonSecretKeyNotFound = "SecretKeyNotFound"
	// ReasonKeyInvalid: The value is not a service account key.
	ReasonKeyInvalid = "KeyInvalid"
	// ReasonKeyIsEnvironmentBlock: The value is the copied environment block instead of the bare key.
	ReasonKeyIsEnvironmentBlock = "KeyIsEnvironmentBlock"
	// ReasonEndpointNotAllowed: The key's Secret does not allow its use with this endpoint; nothing was sent.
	ReasonEndpointNotAllowed = "EndpointNotAllowed"
	// ReasonInsecureTransport: The endpoint is reached without TLS, or with a certificate that is not verified, and
	// omni-controller does not allow that; nothing was sent.
	ReasonInsecureTransport = "InsecureTransport"
	// ReasonSupported: This version of Omni serves what is needed. The message says if nobody tried it.
	ReasonSupported = "Supported"
	// ReasonNewer: Omni is newer than every version that this release was tried with.
	ReasonNewer = "Newer"
	// ReasonTooOld: Omni does not serve a kind that is needed. The message names it, and the version that does.
	ReasonTooOld = "TooOld"
	// ReasonTooMuchData: Omni sent more than the controller keeps of it. The connection is closed, and tried again after a
	// quarter of an hour.
	ReasonTooMuchData = "TooMuchData"
	// ReasonInUse: OmniClusters still name this connection.
	ReasonInUse = "InUse"
	// ReasonWatchLost: A watch on Omni was lost and is set up again.
	ReasonWatchLost = "WatchLost"
)

// Reasons of OmniCluster.
const (
	// ReasonControlPlaneMissing: No OmniControlPlane names this cluster yet.
	ReasonControlPlaneMissing = "ControlPlaneMissing"
	// ReasonMultipleControlPlanes: More than one OmniControlPlane names this cluster.
	ReasonMultipleControlPlanes = "MultipleControlPlanes"
	// ReasonDuplicateWorkerSet: Two OmniWorkers have one worker set name.
	ReasonDuplicateWorkerSet = "DuplicateWorkerSet"
	// ReasonDuplicateMachine: A machine is in two sets, or two OmniMachines describe it.
	ReasonDuplicateMachine = "DuplicateMachine"
	// ReasonDuplicateClusterName: Another OmniCluster claims the same cluster in Omni.
	ReasonDuplicateClusterName = "DuplicateClusterName"
	// ReasonTemplateInvalid: The rules of Omni's client library refuse the template, or Omni is too old for a part of it.
	ReasonTemplateInvalid = "TemplateInvalid"
	// ReasonAssembledTemplate: The documents fit together.
	ReasonAssembledTemplate = "AssembledTemplate"
	// ReasonTemplateValid: The rules of Omni's client library accept the template.
	ReasonTemplateValid = "TemplateValid"
	// ReasonChangesPlanned: There are changes to apply.
	ReasonChangesPlanned = "ChangesPlanned"
	// ReasonCollision: Something that the template needs belongs to another cluster in Omni, or to another part of this one.
	ReasonCollision = "Collision"
	// ReasonOwnershipLost: Another object's mark is on the cluster in Omni.
	ReasonOwnershipLost = "OwnershipLost"
	// ReasonSecondWriter: Omni does not keep what is written: somebody else writes the same resource, again and again.
	ReasonSecondWriter = "SecondWriter"
	// ReasonRemoteLocked: The cluster is locked in Omni.
	ReasonRemoteLocked = "RemoteLocked"
	// ReasonRemoteDeleting: The cluster is being torn down in Omni.
	ReasonRemoteDeleting = "RemoteDeleting"
	// ReasonRemoteClusterGone: Omni no longer has the cluster that this object made.
	ReasonRemoteClusterGone = "RemoteClusterGone"
	// ReasonControlPlaneGone: Omni no longer has the control plane of the cluster, and etcd went with it.
	ReasonControlPlaneGone = "ControlPlaneGone"
	// ReasonWaitingToSettle: Destroying changes wait until they have not changed for the settle time.
	ReasonWaitingToSettle = "WaitingToSettle"
	// ReasonWaitingForDocuments: Machines join when the documents of the cluster have not changed for a moment.
	ReasonWaitingForDocuments = "WaitingForDocuments"
	// ReasonAwaitingApproval: Destroying changes wait for spec.approvedPlan.
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonNamespaceDeleting: The namespace is being deleted: the cluster in Omni is left as it is until the OmniCluster
	// itself is deleted.
	ReasonNamespaceDeleting = "NamespaceDeleting"
	// ReasonObserving: The change policy is Observe: nothing is written to Omni.
	ReasonObserving = "Observing"
	// ReasonRunning: The cluster runs.
	ReasonRunning = "Running"
	// ReasonNotRunning: The cluster does not run yet.
	ReasonNotRunning = "NotRunning"
	// ReasonUpgrading: An upgrade is under way.
	ReasonUpgrading = "Upgrading"
	// ReasonUpgradeFailed: Omni gave an upgrade up; the message has its error.
	ReasonUpgradeFailed = "UpgradeFailed"
	// ReasonManifestsNotApplied: Omni has not applied, or not removed, Kubernetes objects of the cluster; the message names one.
	ReasonManifestsNotApplied = "ManifestsNotApplied"
	// ReasonWaitingForMachines: Machines of a deletion are not gone yet.
	ReasonWaitingForMachines = "WaitingForMachines"
	// ReasonEndpointChanged: The connection leads to another Omni than the one that holds the cluster.
	ReasonEndpointChanged = "EndpointChanged"
)

// Reasons of changes that wait for their turn in an OmniRolloutPolicy.
const (
	// ReasonHeld: Changes wait for their turn in an OmniRolloutPolicy; the condition Held says which and why.
	ReasonHeld = "Held"
	// ReasonPolicyConflict: Two OmniRolloutPolicies select the cluster.
	ReasonPolicyConflict = "PolicyConflict"
	// ReasonLeftPolicy: The policy that held the changes does not select the cluster any more. What was held stays held.
	ReasonLeftPolicy = "LeftPolicy"
	// ReasonPolicyNotReady: The policy is stalled, cannot be read, or its present generation was not looked at yet; or the clock of
	// omni-controller is not that of the hub.
	ReasonPolicyNotReady = "PolicyNotReady"
	// ReasonPolicyOnHold: spec.hold of the policy is set.
	ReasonPolicyOnHold = "PolicyOnHold"
	// ReasonFrozen: A freeze of the policy.
	ReasonFrozen = "Frozen"
	// ReasonClusterNotReady: The cluster has to be Ready before a change begins.
	ReasonClusterNotReady = "ClusterNotReady"
	// ReasonRolloutStopped: More clusters failed than may.
	ReasonRolloutStopped = "RolloutStopped"
	// ReasonRolloutFailed: These changes failed in this cluster. Other ones, the fix, may begin.
	ReasonRolloutFailed = "RolloutFailed"
	// ReasonAwaitingPromotion: The stage begins only while somebody promotes it.
	ReasonAwaitingPromotion = "AwaitingPromotion"
	// ReasonWaitingForStage: An earlier stage has not qualified the change.
	ReasonWaitingForStage = "WaitingForStage"
	// ReasonOutsideWindow: The stage's windows are closed.
	ReasonOutsideWindow = "OutsideWindow"
	// ReasonWaitingForTurn: As many clusters of the stage are at work as may be.
	ReasonWaitingForTurn = "WaitingForTurn"
	// ReasonTurnNotOver: The changes of the cluster's last turn have to be done first.
	ReasonTurnNotOver = "TurnNotOver"
)

// Reasons of OmniRolloutPolicy.
const (
	// ReasonInForce: The policy is in force.
	ReasonInForce = "InForce"
	// ReasonInvalidTimeZone: A time zone is not known.
	ReasonInvalidTimeZone = "InvalidTimeZone"
	// ReasonClockSkew: The clock of omni-controller is not that of omni-apiserver or kube-apiserver; or for a kubeconfig not that of
	// Omni, or it was set back since that was issued; or a key is valid only from a later time than it is by that clock.
	ReasonClockSkew = "ClockSkew"
	// ReasonTooManyFailed: More clusters failed than spec.maxFailed.
	ReasonTooManyFailed = "TooManyFailed"
)

// Reasons of OmniControlPlane, OmniWorkers, OmniMachine.
const (
	// ReasonApplied: Omni has this generation.
	ReasonApplied = "Applied"
	// ReasonAcceptedByCluster: The cluster counts this document.
	ReasonAcceptedByCluster = "AcceptedByCluster"
	// ReasonNotListed: No set of the cluster lists this machine.
	ReasonNotListed = "NotListed"
	// ReasonConflicting: Another document claims the same place.
	ReasonConflicting = "Conflicting"
	// ReasonWaitingForSync: This generation is not applied yet.
	ReasonWaitingForSync = "WaitingForSync"
	// ReasonClusterOnHold: This generation is not applied yet, because the cluster is suspended, only observes, or waits
	// for an approval.
	ReasonClusterOnHold = "ClusterOnHold"
	// ReasonMachinesReady: All machines are ready.
	ReasonMachinesReady = "MachinesReady"
	// ReasonMachinesNotReady: Machines are not ready yet.
	ReasonMachinesNotReady = "MachinesNotReady"
)

// Reasons of OmniKubeconfigExport.
const (
	// ReasonSourceFound: The OmniCluster and its connection are there.
	ReasonSourceFound = "SourceFound"
	// ReasonIssued: Omni issued the kubeconfig.
	ReasonIssued = "Issued"
	// ReasonIssuingLimited: Too many kubeconfigs were asked for in a short time.
	ReasonIssuingLimited = "IssuingLimited"
	// ReasonRenewalFailing: The kubeconfig is still valid, but cannot be renewed at the moment.
	ReasonRenewalFailing = "RenewalFailing"
	// ReasonWritten: The Secret holds the kubeconfig.
	ReasonWritten = "Written"
)

// Reasons of the kinds that reach into workload clusters.
const (
	// ReasonClusterDeleting: The OmniCluster is being deleted; nothing new is done in its cluster.
	ReasonClusterDeleting = "ClusterDeleting"
	// ReasonKubeconfigNotFound: The Secret with the kubeconfig, or its key, does not exist.
	ReasonKubeconfigNotFound = "KubeconfigNotFound"
	// ReasonKubeconfigInvalid: The kubeconfig cannot be used.
	ReasonKubeconfigInvalid = "KubeconfigInvalid"
	// ReasonUnsafeKubeconfig: The kubeconfig asks to run a program, to read a file or not to check certificates, or leads to
	// a server without encryption or with an address to which the controller does not connect.
	ReasonUnsafeKubeconfig = "UnsafeKubeconfig"
	// ReasonWrongCluster: The kubeconfig leads to another cluster than before, or than the OmniCluster.
	ReasonWrongCluster = "WrongCluster"
	// ReasonClusterUnreachable: The workload cluster does not answer.
	ReasonClusterUnreachable = "ClusterUnreachable"
	// ReasonForbiddenAddress: The kubeconfig, or a chart's repository or a redirect of it, leads to an address that may not be dialled.
	ReasonForbiddenAddress = "ForbiddenAddress"
	// ReasonForbidden: The workload cluster's RBAC does not allow it.
	ReasonForbidden = "Forbidden"
	// ReasonIdentityUnknown: The workload cluster answers; whether it is the right one could not be checked.
	ReasonIdentityUnknown = "IdentityUnknown"
	// ReasonSourceNotFound: The source Secret, or a key of it, does not exist.
	ReasonSourceNotFound = "SourceNotFound"
	// ReasonNamespaceNotFound: The target namespace does not exist in the workload cluster.
	ReasonNamespaceNotFound = "NamespaceNotFound"
	// ReasonForeignTarget: The target exists and is not this object's.
	ReasonForeignTarget = "ForeignTarget"
)

// Reasons of OmniHelmRelease.
const (
	// ReasonOlderState: The release was made by a later state of this object than the one that the API has now, as after
	// the restore of a snapshot.
	ReasonOlderState = "OlderState"
	// ReasonChartFound: The repository has the chart.
	ReasonChartFound = "ChartFound"
	// ReasonChartNotFound: The repository answers, and has no such chart or version.
	ReasonChartNotFound = "ChartNotFound"
	// ReasonChartUnauthorized: The repository does not accept the credentials, or wants some.
	ReasonChartUnauthorized = "ChartUnauthorized"
	// ReasonChartTooLarge: The repository's index or the chart exceeds its limit.
	ReasonChartTooLarge = "ChartTooLarge"
	// ReasonDigestMismatch: The chart is not the one that spec.chart.digest or the repository's index names.
	ReasonDigestMismatch = "DigestMismatch"
	// ReasonChartUnverified: The chart's provenance is missing, or not signed by a key of the keyring.
	ReasonChartUnverified = "ChartUnverified"
	// ReasonChartRefused: Rendering the chart takes too much memory, does not end, or prints too much, or its crds folder
	// holds what is no CRD. It is tried again when the chart, the values or the settings change. Or reading the
	// repository's index or the provenance file takes too much; these are read again at the interval.
	ReasonChartRefused = "ChartRefused"
	// ReasonChartInvalid: The chart, its source or the repository's index cannot be used.
	ReasonChartInvalid = "ChartInvalid"
	// ReasonRepositoryUnreachable: The chart's repository does not answer, or not in time.
	ReasonRepositoryUnreachable = "RepositoryUnreachable"
	// ReasonValuesInvalid: A source of values is not an object of names and values.
	ReasonValuesInvalid = "ValuesInvalid"
	// ReasonClusterSuspended: The OmniCluster is suspended, so no install, upgrade or rollback begins. The release goes on when the
	// cluster is resumed.
	ReasonClusterSuspended = "ClusterSuspended"
	// ReasonDependencyNotReady: A release of spec.dependsOn is not Ready.
	ReasonDependencyNotReady = "DependencyNotReady"
	// ReasonDependencyCycle: Releases wait for one another.
	ReasonDependencyCycle = "DependencyCycle"
	// ReasonDeployed: The release is deployed as wanted.
	ReasonDeployed = "Deployed"
	// ReasonLocked: Another Helm client works on the release, or left it locked; or an uninstall from before a restored snapshot did.
	ReasonLocked = "Locked"
	// ReasonActionFailed: A Helm action failed; it is tried again, or every attempt was used up.
	ReasonActionFailed = "ActionFailed"
	// ReasonRecordUnreadable: Helm's record of the release in the workload cluster is larger than what is read, or
	// damaged, or there are too many. The release is left as it is.
	ReasonRecordUnreadable = "RecordUnreadable"
	// ReasonTestsPassed: The chart's tests passed.
	ReasonTestsPassed = "TestsPassed"
	// ReasonTestsFailed: A test of the chart failed.
	ReasonTestsFailed = "TestsFailed"
	// ReasonDisabled: The spec does not ask for it.
	ReasonDisabled = "Disabled"
	// ReasonNoDrift: The live objects are as the release says.
	ReasonNoDrift = "NoDrift"
	// ReasonDriftFound: Live objects differ from the release.
	ReasonDriftFound = "DriftFound"
	// ReasonDriftCorrected: Live objects differed from the release and were applied again.
	ReasonDriftCorrected = "DriftCorrected"
)
