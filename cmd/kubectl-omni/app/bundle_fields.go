package app

import "strings"

// The fields that a support bundle has: a list of what is allowed, so that a new field is left out until somebody has
// looked at it. "spec.a" allows one field, "spec.a.*" all below it; lists are looked through.
//
// What may hold a secret is not there: values, inline patches, manifests and jobs, kernel arguments, and diffs.

// commonFields are those of every kind.
var commonFields = []string{ //nolint:gochecknoglobals // a table
	"apiVersion", "kind",
	"metadata.name", "metadata.namespace", "metadata.uid", "metadata.generation", "metadata.resourceVersion", "metadata.creationTimestamp",
	"metadata.deletionTimestamp", "metadata.finalizers", "metadata.labels.*",
	"spec.clusterRef.*", "spec.suspend", "spec.adopt", "spec.deletionPolicy",
	"status.observedGeneration", "status.lastHandledReconcileAt", "status.conditions.*",
}

// kindFields are those of single kinds, besides.
var kindFields = map[string][]string{ //nolint:gochecknoglobals // a table
	"OmniConnection": {
		"spec.endpoint", "spec.auth.serviceAccountSecretRef.*", "spec.insecureSkipTLSVerify", "status.endpoint", "status.serviceAccount.*", "status.access.*",
	},
	"OmniCluster": {
		"spec.connectionRef.*", "spec.clusterName", "spec.kubernetes.version", "spec.talos.version", "spec.systemExtensions", "spec.features.*",
		"spec.deletePolicy.*", "spec.changePolicy", "spec.approvedPlan", "spec.syncInterval",
		"status.clusterName", "status.connectionRef.*", "status.endpoint", "status.omniClusterID", "status.controlPlaneRef.*", "status.workersRefs.*",
		"status.machineRefs.*", "status.appliedMachineSets.*", "status.appliedManifests", "status.appliedTimes.*", "status.lastDestroyed.*", "status.controlPlaneSet.*", "status.adopting", "status.starting", "status.lastSyncTime",
		"status.plan.hash", "status.plan.creates", "status.plan.updates", "status.plan.destroys", "status.plan.destructive", "status.plan.held",
		"status.plan.changes.*", "status.plan.omittedChanges", "status.plan.approved.*", "status.usedApproval", "status.refusals.*", "status.rollout.*", "status.omni.*",
	},
	"OmniControlPlane": {
		"spec.machines", "spec.machineClass.*", "spec.systemExtensions", "status.clusterRef.*", "status.workerSetName", "status.replicas", "status.readyReplicas",
	},
	"OmniWorkers": {
		"spec.workerSetName", "spec.machines", "spec.machineClass.*", "spec.systemExtensions", "spec.updateStrategy.*", "spec.deleteStrategy.*",
		"status.clusterRef.*", "status.workerSetName", "status.replicas", "status.readyReplicas",
	},
	"OmniMachine": {"spec.machineID", "spec.locked", "spec.install.*", "status.clusterRef.*", "status.machineID", "status.stage", "status.connected"},
	"OmniKubeconfigExport": {
		"spec.targetSecretRef.*", "spec.serviceAccount.*", "spec.ttl", "spec.renewBefore", "spec.format",
		"status.clusterName", "status.targetSecretRef.*", "status.expirationTime", "status.nextRotationTime", "status.lastRotationTime",
	},
	"OmniSecretSync": {
		"spec.kubeconfigSecretRef.*", "spec.sourceSecretRef.*", "spec.targetSecretRef.*", "spec.type", "spec.keys.*", "spec.createNamespace",
		"status.target.name", "status.target.namespace", "status.pendingTargets.name", "status.pendingTargets.namespace",
		"status.clusterID", "status.lastSyncTime",
	},
	"OmniHelmRelease": {
		"spec.kubeconfigSecretRef.*", "spec.releaseName", "spec.namespace", "spec.createNamespace", "spec.chart.chart", "spec.chart.version",
		"spec.chart.digest", "spec.wait", "spec.waitForJobs", "spec.timeout", "spec.rollbackOnFailure", "spec.maxHistory", "spec.takeOwnership",
		"spec.interval", "spec.retries", "spec.driftDetection.mode", "spec.dependsOn.*", "spec.test.*",
		"status.clusterID", "status.chart", "status.chartVersion", "status.chartDigest", "status.foundChart.*", "status.revision", "status.releaseStatus", "status.releaseName",
		"status.namespace", "status.lastAction", "status.lastActionTime", "status.failures", "status.history.*",
	},
	"OmniRolloutPolicy": {"spec.*", "status.*"},
}

// ourAnnotations begin the keys of the annotations that a bundle has.
const ourAnnotations = "omni.texashpc.com/"

// allowedOf is the allow list of a kind, as a tree.
func allowedOf(kind string) fieldTree {
	tree := fieldTree{}

	for _, list := range [][]string{commonFields, kindFields[kind]} {
		for _, path := range list {
			tree.add(strings.Split(path, "."))
		}
	}

	return tree
}

// fieldTree is a set of fields. A field without a tree below it is allowed as it is, if it is a scalar or a list of scalars;
// "*" allows everything below.
type fieldTree map[string]fieldTree

func (t fieldTree) add(path []string) {
	if len(path) == 0 {
		return
	}

	if t[path[0]] == nil {
		t[path[0]] = fieldTree{}
	}

	t[path[0]].add(path[1:])
}

// pick keeps of a value what is allowed; nil if nothing is.
func (t fieldTree) pick(value any) any {
	if _, all := t["*"]; all {
		return value
	}

	switch v := value.(type) {
	case map[string]any:
		kept := map[string]any{}

		for key, below := range v {
			tree, allowed := t[key]
			if !allowed {
				continue
			}

			if picked := tree.pick(below); picked != nil {
				kept[key] = picked
			}
		}

		if len(kept) == 0 {
			return nil
		}

		return kept
	case []any:
		var kept []any

		for _, item := range v {
			if picked := t.pick(item); picked != nil {
				kept = append(kept, picked)
			}
		}

		if kept == nil {
			return nil
		}

		return kept
	default:
		if len(t) > 0 {
			return nil // an object was expected
		}

		return value
	}
}
