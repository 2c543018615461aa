package helm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// crdDirectory is where a chart has its CRDs.
const crdDirectory = "crds/"

// keepExistingCRDs takes those CRDs out of a chart that the cluster has
// already. Helm 4 would apply them over the existing ones, which may be newer
// and belong to somebody else; Helm 3 left them alone, and so do we.
func (c *Client) keepExistingCRDs(ctx context.Context, ch *chart.Chart) error {
	for _, dependency := range ch.Dependencies() {
		if err := c.keepExistingCRDs(ctx, dependency); err != nil {
			return err
		}
	}

	var failure error

	ch.Files = slices.DeleteFunc(ch.Files, func(file *common.File) bool {
		if failure != nil || !strings.HasPrefix(file.Name, crdDirectory) {
			return false
		}

		exist, err := c.crdsExist(ctx, crdNames(file.Data))
		failure = err

		return exist
	})

	return failure
}

// crdNames are the names in a file of CRDs.
func crdNames(data []byte) []string {
	var names []string

	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), len(data)+1); ; {
		var object metav1.PartialObjectMetadata
		if err := decoder.Decode(&object); err != nil {
			if errors.Is(err, io.EOF) {
				return names
			}

			// Helm itself says what is wrong with it.
			return nil
		}

		if object.Kind == "CustomResourceDefinition" && object.Name != "" {
			names = append(names, object.Name)
		}
	}
}

// crdsExist tells whether the cluster has all of the CRDs.
func (c *Client) crdsExist(ctx context.Context, names []string) (bool, error) {
	client, err := c.metadata(ctx)
	if err != nil || len(names) == 0 {
		return false, err
	}

	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})

	for _, name := range names {
		_, err := crds.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}

		if err != nil {
			return false, fmt.Errorf("look for the CRD %s (set skipCRDs if somebody else brings it): %w", name, err)
		}
	}

	return true, nil
}
