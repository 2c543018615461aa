package app

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

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

// shownOf is what a bundle has of an object.
func shownOf(content map[string]any) map[string]any {
	kind, _ := content["kind"].(string)
	shown, _ := allowedOf(kind).pick(content).(map[string]any)

	if metadata, has := shown["metadata"].(map[string]any); has {
		if annotations := ours(content); len(annotations) > 0 {
			metadata["annotations"] = annotations
		}
	}

	return shown
}

// ours are the annotations of an object that this project knows.
func ours(content map[string]any) map[string]any {
	metadata, _ := content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	kept := map[string]any{}

	for key, value := range annotations {
		if strings.HasPrefix(key, ourAnnotations) {
			kept[key] = value
		}
	}

	return kept
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

// anonymizer replaces hostnames and addresses by short hashes: the same one has the same hash, so that a reader can still
// follow it.
type anonymizer struct {
	salt string
	// names finds the hostnames without a dot that are known; nil if there are none.
	names *regexp.Regexp
}

// hostFields are the fields, and the label, whose values are hostnames, in objects, events and Pods.
var hostFields = []string{"hostname", "nodeName", "host", corev1.LabelHostname} //nolint:gochecknoglobals // a table

// hostNames are hostnames that need no dot.
type hostNames map[string]bool

// gather finds the hostnames that a value calls so.
func (h hostNames) gather(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			if slices.Contains(hostFields, key) || key == "values" && v["key"] == corev1.LabelHostname {
				h.add(below)
			}

			h.gather(below)
		}
	case []any:
		for _, below := range v {
			h.gather(below)
		}
	}
}

// add takes a name, or a list of them.
func (h hostNames) add(value any) {
	switch v := value.(type) {
	case string:
		h[v] = true
	case []any:
		for _, below := range v {
			h.add(below)
		}
	}
}

// learn remembers hostnames. A word of our own names says nothing of a user's network.
func (a *anonymizer) learn(hosts hostNames) {
	quoted := make([]string, 0, len(hosts))

	for name := range hosts {
		if name != "" && !slices.ContainsFunc(ourNames, func(ours string) bool { return slices.Contains(strings.Split(ours, "."), name) }) {
			quoted = append(quoted, regexp.QuoteMeta(name))
		}
	}

	if len(quoted) > 0 {
		// The longest first: of node-1 and node-10, the second is not the first with a 0.
		slices.SortFunc(quoted, func(one, other string) int { return cmp.Or(len(other)-len(one), strings.Compare(one, other)) })
		a.names = regexp.MustCompile(`\b(` + strings.Join(quoted, "|") + `)\b`)
	}
}

var (
	// hostName finds names with a dot that end in letters. ipv4 and ipv6 find what may be an address, without the port
	// or the prefix length beside it.
	hostName = regexp.MustCompile(`\b[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*\.[A-Za-z]{2,}\b`)
	ipv4     = regexp.MustCompile(`\b[0-9]{1,3}(\.[0-9]{1,3}){3}\b`)
	ipv6     = regexp.MustCompile(`[0-9A-Fa-f]*(:[0-9A-Fa-f]*){2,}`)
)

// ourNames are names with dots that say nothing of a user's network.
var ourNames = []string{"omni.texashpc.com", "texashpc.com", "sidero.dev", "k8s.io", "kubernetes.io", "svc.cluster.local"} //nolint:gochecknoglobals // a table

func (a anonymizer) text(text string) string {
	if a.names != nil {
		text = a.names.ReplaceAllStringFunc(text, func(name string) string { return "host-" + a.hash(name) })
	}

	text = hostName.ReplaceAllStringFunc(text, func(name string) string {
		for _, ours := range ourNames {
			if name == ours || strings.HasSuffix(name, "."+ours) {
				return name
			}
		}

		return "host-" + a.hash(name)
	})

	return ipv6.ReplaceAllStringFunc(ipv4.ReplaceAllStringFunc(text, a.address), a.address)
}

// address hashes a text if it is an address, with a colon of the sentence behind it or without. "::" is everybody's.
func (a anonymizer) address(text string) string {
	address := text
	if strings.HasSuffix(text, ":") && !strings.HasSuffix(text, "::") {
		address = strings.TrimSuffix(text, ":")
	}

	if _, err := netip.ParseAddr(address); err != nil || address == "::" {
		return text
	}

	return "address-" + a.hash(address) + text[len(address):]
}

func (a anonymizer) hash(text string) string {
	sum := sha256.Sum256([]byte(a.salt + text))

	return hex.EncodeToString(sum[:4])
}

// document makes every text anonymous in a document; keys are texts, too: those of labels may have a domain.
func (a anonymizer) document(document map[string]any) map[string]any {
	changed := make(map[string]any, len(document))
	for key, below := range document {
		changed[a.text(key)] = a.value(below)
	}

	return changed
}

// value makes every text anonymous in a value.
func (a anonymizer) value(value any) any {
	switch v := value.(type) {
	case string:
		return a.text(v)
	case map[string]any:
		return a.document(v)
	case []any:
		for i := range v {
			v[i] = a.value(v[i])
		}
	}

	return value
}
