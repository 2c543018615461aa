package migrate

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// patchTheirs changes fields of an object of the operator with CRDs.
func (m *Migration) patchTheirs(ctx context.Context, s *state, obj *unstructured.Unstructured, fields map[string]any) error {
	resource, err := s.resourceOf(obj)
	if err != nil {
		return err
	}

	return m.hub.patch(ctx, resource, obj.GetNamespace(), obj.GetName(), fields)
}

// patchOurs changes fields of an object that was imported.
func (m *Migration) patchOurs(ctx context.Context, c *Converted, fields map[string]any) error {
	of, known := kindNamed(c.Kind)
	if !known {
		return fmt.Errorf("%s: this operator has no such kind", c.ID())
	}

	return m.hub.patch(ctx, of.resource(), c.Namespace, c.Name, fields)
}

// scale sets the replicas of a Deployment.
func (m *Migration) scale(ctx context.Context, deployment *unstructured.Unstructured, replicas int64) error {
	return m.hub.patch(ctx, deploymentsResource, deployment.GetNamespace(), deployment.GetName(), map[string]any{"spec": map[string]any{"replicas": replicas}})
}
