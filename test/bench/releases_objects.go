package main

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// releasesNamespace is that of our releases in the hub. Flux reads a kubeconfig only from the
	// namespace of the object that names it, so that its own are all in Flux's.
	releasesNamespace = "releases"
	// fluxCharts is Flux's object for the chart repository.
	fluxCharts = "charts"
	// benchChart is a chart of one ConfigMap.
	benchChart, benchChartVersion = "settings", "1.0.0"
)

func ourReleases() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: ourGroup, Version: apiVersion, Resource: "omnihelmreleases"}
}

func fluxReleases() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}
}

func fluxRepositories() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "helmrepositories"}
}

// objectsPath is the path of a resource of any group.
func objectsPath(resource schema.GroupVersionResource, namespace string) string {
	return "/apis/" + resource.Group + "/" + resource.Version + "/namespaces/" + namespace + "/" + resource.Resource
}

// releaseName is the name of the release with a number.
func releaseName(number int) string { return fmt.Sprintf("release-%04d", number) }

// workloadName names a workload cluster's OmniCluster and the Secret with its kubeconfig.
func workloadName(number int) string { return fmt.Sprintf("workload-%d", number) }

// wantedRelease is what both sides get told, each in its own words.
type wantedRelease struct {
	number, workload int
	repository       string // URL; Flux knows it by name
	namespace        string // in the workload cluster
	interval         time.Duration
}

// ourRelease waits for its objects, because Flux does so by default.
func ourRelease(w wantedRelease) map[string]any {
	return manifest(ourGroup, "OmniHelmRelease", releaseName(w.number), map[string]any{
		"clusterRef":          map[string]any{"name": workloadName(w.workload)},
		"kubeconfigSecretRef": map[string]any{"name": workloadName(w.workload)},
		"namespace":           w.namespace,
		"interval":            w.interval.String(),
		"wait":                true,
		"chart":               map[string]any{"repository": w.repository, "chart": benchChart, "version": benchChartVersion},
	})
}

// fluxRelease is written as Flux's own guide does: source-controller makes a chart object of it.
func fluxRelease(w wantedRelease) map[string]any {
	resource := fluxReleases()

	return map[string]any{
		"apiVersion": resource.GroupVersion().String(), "kind": "HelmRelease",
		"metadata": map[string]any{"name": releaseName(w.number)},
		"spec": map[string]any{
			"interval":         w.interval.String(),
			"releaseName":      releaseName(w.number),
			"targetNamespace":  w.namespace,
			"storageNamespace": w.namespace,
			"kubeConfig":       map[string]any{"secretRef": map[string]any{"name": workloadName(w.workload)}},
			"chart": map[string]any{"spec": map[string]any{
				"chart": benchChart, "version": benchChartVersion,
				"sourceRef": map[string]any{"kind": "HelmRepository", "name": fluxCharts},
			}},
		},
	}
}

// fluxRepository is the chart repository for Flux.
func fluxRepository(url string, interval time.Duration) map[string]any {
	return map[string]any{
		"apiVersion": fluxRepositories().GroupVersion().String(), "kind": "HelmRepository",
		"metadata": map[string]any{"name": fluxCharts},
		"spec":     map[string]any{"url": url, "interval": interval.String()},
	}
}

// restingCluster is an OmniCluster that only has to exist: its workload cluster is not Omni's.
func restingCluster(name string) map[string]any {
	spec := clusterSpec("0")
	spec["suspend"] = true

	return manifest(ourGroup, "OmniCluster", name, spec)
}

// kubeconfigSecret has the kubeconfig under our key and under Flux's.
func kubeconfigSecret(name, kubeconfig string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name},
		"stringData": map[string]any{"kubeconfig": kubeconfig, "value": kubeconfig},
	}
}
