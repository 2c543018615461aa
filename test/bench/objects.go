package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
)

const (
	ourGroup   = "omni.texashpc.com"
	apiVersion = "v1alpha1"
	// fieldManager applies and patches.
	fieldManager = "bench"
)

// encode is JSON of what is JSON by construction.
func encode(object map[string]any) []byte {
	data, err := json.Marshal(object)
	if err != nil {
		// Maps, slices, texts and numbers only: this cannot happen.
		return []byte(err.Error())
	}

	return data
}

func manifest(group, kind, name string, spec map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": group + "/" + apiVersion, "kind": kind,
		"metadata": map[string]any{"name": name},
		"spec":     spec,
	}
}

// clusterSpec is a spec of a usual size: versions, labels, two patches, one manifest.
func clusterSpec(label string) map[string]any {
	return map[string]any{
		"connectionRef": map[string]any{"name": "omni"},
		"labels":        map[string]any{"team": "platform", "site": "north-1", "step": label},
		"kubernetes": map[string]any{
			"version": "v1.35.1",
			"manifests": []any{map[string]any{"name": "namespaces", "mode": "full", "inline": []any{
				map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "apps"}},
			}}},
		},
		"talos":    map[string]any{"version": "v1.13.3"},
		"features": map[string]any{"enableWorkloadProxy": true, "backupConfiguration": map[string]any{"interval": "1h"}},
		"patches": []any{
			patch("kubelet-max-pods", map[string]any{"machine": map[string]any{"kubelet": map[string]any{"extraConfig": map[string]any{"maxPods": 200}}}}),
			patch("sysctls", map[string]any{"machine": map[string]any{"sysctls": map[string]any{
				"net.core.somaxconn": "65535", "vm.max_map_count": "1048576", "fs.inotify.max_user_watches": "1048576",
			}}}),
		},
		"systemExtensions": []any{"siderolabs/iscsi-tools", "siderolabs/util-linux-tools"},
	}
}

func patch(name string, inline map[string]any) map[string]any {
	return map[string]any{"name": name, "inline": inline}
}

// clusterObject is the object of part (a), in a group of the caller's choice.
func clusterObject(group, name, label string) map[string]any {
	return manifest(group, "OmniCluster", name, clusterSpec(label))
}

// connectedCluster is a cluster of a connection.
func connectedCluster(name, connection string) map[string]any {
	spec := clusterSpec("0")
	spec["connectionRef"] = map[string]any{"name": connection}

	return manifest(ourGroup, "OmniCluster", name, spec)
}

// rolloutPolicy holds every cluster of its namespace, in one stage.
func rolloutPolicy(name string, maxConcurrent int) map[string]any {
	return manifest(ourGroup, "OmniRolloutPolicy", name, map[string]any{
		"clusterSelector": map[string]any{}, "hold": true,
		"stages": []any{map[string]any{"name": "all", "maxConcurrent": maxConcurrent}},
	})
}

// labelPatch is a small merge patch of the spec.
func labelPatch(label string) []byte {
	return encode(map[string]any{"spec": map[string]any{"labels": map[string]any{"step": label}}})
}

// statusPatch is a merge patch of the status as the controller writes it for a running cluster.
func statusPatch(label string) []byte {
	counts := map[string]any{"total": 3, "connected": 3, "healthy": 3, "requested": 3}

	return encode(map[string]any{"status": map[string]any{
		"observedGeneration": 1,
		"clusterName":        "cluster",
		"connectionRef":      map[string]any{"name": "omni"},
		"endpoint":           "https://omni.example.com",
		"omniClusterID":      "0d0b9a52-6b1f-4ac6-8b3e-0d6b3f7b4b7c",
		"templateHash":       "5f1d7a84db00d2fce00b31a7fc73224f8a4f3a52-" + label,
		"lastSyncTime":       "2026-11-21T10:00:00Z",
		"conditions": []any{
			condition("Ready", "True", "Running", label), condition("Reconciling", "False", "Running", ""),
			condition("ConnectionReady", "True", "Connected", ""), condition("Assembled", "True", "Assembled", ""),
			condition("Validated", "True", "Valid", ""), condition("Planned", "True", "NoChanges", ""),
			condition("Synced", "True", "Synced", ""), condition("Available", "True", "Available", ""),
		},
		"omni": map[string]any{
			"phase": "RUNNING", "kubernetesVersion": "1.35.1", "talosVersion": "1.13.3",
			"kubernetesAPIReady": true, "controlPlaneReady": true, "machines": counts,
		},
	}})
}

func condition(kind, status, reason, message string) map[string]any {
	return map[string]any{
		"type": kind, "status": status, "reason": reason, "message": "Omni runs the cluster as written. " + message,
		"lastTransitionTime": "2026-11-21T10:00:00Z", "observedGeneration": 1,
	}
}

// fleetCluster is a cluster as a user has it: a control plane and two worker sets with one machine
// each, and patches on all of them. The keys are resource names.
func fleetCluster(name, connection string, machines [machinesPerCluster]string) []resourceObject {
	set := func(machine, key string, extra map[string]any) map[string]any {
		spec := map[string]any{
			"clusterRef": map[string]any{"name": name},
			"machines":   []any{machine},
			"patches": []any{patch("labels", map[string]any{"machine": map[string]any{
				"nodeLabels": map[string]any{"example.com/set": key},
			}})},
		}
		maps.Copy(spec, extra)

		return spec
	}

	return []resourceObject{
		{"omniclusters", connectedCluster(name, connection)},
		{"omnicontrolplanes", manifest(ourGroup, "OmniControlPlane", name, set(machines[0], "control-plane", nil))},
		{"omniworkers", manifest(ourGroup, "OmniWorkers", name+"-a", set(machines[1], "a", nil))},
		{"omniworkers", manifest(ourGroup, "OmniWorkers", name+"-b", set(machines[2], "b", map[string]any{
			"updateStrategy": map[string]any{"type": "Rolling", "rolling": map[string]any{"maxParallelism": 2}},
		}))},
	}
}

// machinesPerCluster is one of the control plane and one of each worker set.
const machinesPerCluster = 3

// resourceObject is an object and the plural name of its kind.
type resourceObject struct {
	resource string
	object   map[string]any
}

// name of the object.
func (o resourceObject) name() string {
	return o.object["metadata"].(map[string]any)["name"].(string)
}

// fleetName is the name of the cluster with a number.
func fleetName(number int) string { return fmt.Sprintf("cluster-%04d", number) }

// connectionObjects are the connection named omni and its Secret.
func connectionObjects(name, endpoint, key string, ca []byte) (secret, connection map[string]any) {
	secret = map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
			"name": name + "-key", "annotations": map[string]any{"omni.texashpc.com/allowed-endpoints": endpoint},
		},
		"stringData": map[string]any{"serviceAccountKey": key},
	}
	connection = manifest(ourGroup, "OmniConnection", name, map[string]any{
		"endpoint": endpoint,
		"caBundle": base64.StdEncoding.EncodeToString(ca),
		"auth":     map[string]any{"serviceAccountSecretRef": map[string]any{"name": name + "-key"}},
	})

	return secret, connection
}
