package apiserver

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/install"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry"
)

// NewScheme makes a scheme with everything that the server encodes and decodes: all our kinds, Scale, and the types
// that every API server needs (options, Status, discovery).
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)

	if err := registry.AddFieldLabels(scheme); err != nil {
		return nil, fmt.Errorf("make scheme: %w", err)
	}

	// ListOptions and similar types are decoded in the version "v1" whatever the group.
	v1 := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, v1)
	scheme.AddUnversionedTypes(v1,
		&metav1.Status{},
		&metav1.APIVersions{},
		&metav1.APIGroupList{},
		&metav1.APIGroup{},
		&metav1.APIResourceList{},
	)

	return scheme, nil
}
