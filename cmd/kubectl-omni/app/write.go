package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// fieldManager is who the API server says wrote what this tool wrote. It must not begin with kubectl: Flux takes the fields of
// such managers over, and so removes what Git does not set (fluxcd/pkg/ssa, PatchReplaceFieldsManagers).
const fieldManager = "omni-plugin"

// cluster reads an OmniCluster.
func (t *tool) cluster(ctx context.Context, name string) (*v1alpha1.OmniCluster, error) {
	client, namespace, err := t.api()
	if err != nil {
		return nil, err
	}

	return client.OmniV1alpha1().OmniClusters(namespace).Get(ctx, name, metav1.GetOptions{})
}

// policy reads an OmniRolloutPolicy.
func (t *tool) policy(ctx context.Context, name string) (*v1alpha1.OmniRolloutPolicy, error) {
	client, namespace, err := t.api()
	if err != nil {
		return nil, err
	}

	found, err := client.OmniV1alpha1().OmniRolloutPolicies(namespace).Get(ctx, name, metav1.GetOptions{})
	if isUnknownKind(err) {
		return nil, errors.New("the API server does not know OmniRolloutPolicy: it is older than this plugin")
	}

	return found, err
}

// isUnknownKind reports whether a server has no such kind. That an object does not exist, it says in other words.
func isUnknownKind(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// change patches an object that was read: it fails if another one has its name by now. What the controller writes meanwhile
// is no reason to fail, and whatever decides about changes carries their hash. set are the fields below spec, annotations
// those of the metadata; nil removes one.
func (t *tool) change(ctx context.Context, o object, set, annotations map[string]any) error {
	metadata := map[string]any{"uid": o.GetUID()}
	if annotations != nil {
		metadata["annotations"] = annotations
	}

	body := map[string]any{"metadata": metadata}
	if set != nil {
		body["spec"] = set
	}

	patch, err := json.Marshal(body)
	if err != nil {
		return err
	}

	client, _, err := t.api()
	if err != nil {
		return err
	}

	api, options := client.OmniV1alpha1(), metav1.PatchOptions{FieldManager: fieldManager}

	switch o.(type) {
	case *v1alpha1.OmniCluster:
		_, err = api.OmniClusters(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch, options)
	case *v1alpha1.OmniHelmRelease:
		_, err = api.OmniHelmReleases(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch, options)
	case *v1alpha1.OmniRolloutPolicy:
		_, err = api.OmniRolloutPolicies(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch, options)
	default:
		err = fmt.Errorf("%T cannot be changed", o)
	}

	return err
}

// told says what was done.
func (t *tool) told(format string, args ...any) error {
	_, err := fmt.Fprintf(t.Out, format+"\n", args...)

	return err
}
