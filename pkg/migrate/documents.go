package migrate

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// documentsOf returns the documents of a cluster, also those that cannot be converted.
func (v *verification) documentsOf(cluster *Converted) []*Converted {
	return only(v.all, func(c *Converted) bool {
		switch c.Kind {
		case "OmniControlPlane", "OmniWorkers", "OmniMachine":
			return c.Namespace == cluster.Namespace && v.clusterOf(c) == cluster.Name
		default:
			return false
		}
	})
}

// clusterOf returns the cluster that an object names; that of the saved object if it cannot be converted.
func (m *Migration) clusterOf(c *Converted) string {
	if c.Object != nil {
		return v1alpha1.ClusterRefOf(c.Object)
	}

	name := ""
	if old := m.saved(c); old != nil {
		name, _, _ = unstructured.NestedString(old.Object, "spec", "clusterRef", "name")
	}

	return name
}

// saved returns the object of the backup that one was converted from.
func (m *Migration) saved(c *Converted) *unstructured.Unstructured {
	for i := range m.backup.Objects {
		if m.backup.Objects[i].GetUID() == c.UID && m.backup.Objects[i].GetKind() == c.Kind && m.backup.Objects[i].GetName() == c.Name {
			return &m.backup.Objects[i]
		}
	}

	return nil
}

// wasMade reports whether an object existed with this operator.
func (m *Migration) wasMade(c *Converted) bool { return slices.Contains(m.backup.Imported, c.ID()) }

// whyMissing says why an object does not exist.
func (m *Migration) whyMissing(c *Converted) string {
	if m.wasMade(c) {
		return "somebody deleted it"
	}

	return "it was not imported"
}

// unmadeDocument names a document of the cluster that could not be imported, and was not made by hand either.
func (v *verification) unmadeDocument(ctx context.Context, cluster *Converted) (string, error) {
	for _, c := range v.documentsOf(cluster) {
		if v.wasMade(c) {
			continue
		}

		if obj, err := v.live(ctx, c); obj == nil || err != nil {
			return c.ID(), err
		}
	}

	return "", nil
}

// unseenDocument names a document of the cluster that the controller has not processed yet.
func (v *verification) unseenDocument(ctx context.Context, cluster *Converted) (string, error) {
	for _, c := range v.documentsOf(cluster) {
		obj, err := v.live(ctx, c)
		if err != nil {
			return c.ID(), err
		}

		if obj == nil {
			continue // deleted by its user, who wants it so
		}

		if seen, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration"); seen != obj.GetGeneration() {
			return c.ID(), nil
		}
	}

	return "", nil
}
