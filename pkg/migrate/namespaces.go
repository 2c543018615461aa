package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// chartLabel is on every object of the old operator's chart, with its name and version; theirChart begins it.
	chartLabel = "helm.sh/chart"
	theirChart = nameValue + "-"
	// releaseName and releaseNamespace are Helm's marks on the objects of a release.
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
)

// namespaceWarnings warns of each Namespace of a Deployment that goes with the old installation.
func (h *hub) namespaceWarnings(ctx context.Context, deployments []unstructured.Unstructured) ([]string, error) {
	var warnings []string

	for i := range deployments {
		namespace, err := h.get(ctx, namespacesResource, "", deployments[i].GetNamespace())
		if err != nil {
			return nil, err
		}

		if namespace != nil && isInstalledWith(namespace, &deployments[i]) {
			warnings = append(warnings, fmt.Sprintf("Namespace %s is part of the old installation: helm uninstall and kubectl delete -k delete it with "+
				"everything in it, the Secret with Omni's key and the objects of this operator, and an annotation does not keep it. Take the commands of "+
				"\"Uninstall the old operator\" in docs/how-to/migrate.md", namespace.GetName()))
		}
	}

	return slices.Compact(warnings), nil
}

// isInstalledWith reports whether a Namespace belongs to the installation of a Deployment: to its Helm release, which has it
// with namespace.create, or to the kustomization of the old operator.
func isInstalledWith(namespace, deployment *unstructured.Unstructured) bool {
	marks, labels := namespace.GetAnnotations(), namespace.GetLabels()
	of := deployment.GetAnnotations()

	return marks[releaseName] != "" && marks[releaseName] == of[releaseName] && marks[releaseNamespace] == of[releaseNamespace] ||
		strings.HasPrefix(labels[chartLabel], theirChart) ||
		labels[nameLabel] == nameValue && labels[controlPlaneLabel] == controlPlaneValue
}
