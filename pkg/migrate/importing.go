package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// converted returns our objects for those of the backup, in the order of the import. What becomes a part of another object is
// none.
func (m *Migration) converted() []*Converted {
	byKind := map[string][]unstructured.Unstructured{}
	for _, obj := range m.backup.Objects {
		byKind[obj.GetKind()] = append(byKind[obj.GetKind()], obj)
	}

	ordered := slices.Concat(byKind[addonKind], byKind[ciliumKind])
	for _, k := range kinds() {
		ordered = append(ordered, byKind[k.Name]...)
	}

	return only(ConvertAll(ordered), func(c *Converted) bool {
		_, known := kindNamed(c.Kind)

		return known
	})
}

// observed returns the form in which an object is created first: nothing is written to Omni before the plan is known,
// and an accidental deletion leaves the cluster alone.
func observed(obj runtime.Object) runtime.Object {
	cluster, ok := obj.(*v1alpha1.OmniCluster)
	if !ok {
		return obj
	}

	first := cluster.DeepCopy()
	first.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve
	first.Spec.DeletePolicy = v1alpha1.OmniClusterDeletePolicy{Orphan: true}

	return first
}

// importAll creates the objects that do not exist. It leaves an existing object unchanged: an earlier run or the user
// made it, and may have changed it since. One that an earlier run made and that is gone was deleted by its user. If one
// object is refused, the others are still created and verified; what was refused ends the run after that.
func (m *Migration) importAll(ctx context.Context) error {
	before := map[string]bool{}
	for _, id := range m.backup.Imported {
		before[id] = true
	}

	missing := only(m.converted(), func(c *Converted) bool { return !before[c.ID()] })
	if len(missing) == 0 {
		m.say("      all were made before")

		return nil
	}

	stopped := m.importEach(ctx, missing)

	// Also what was made before the run was stopped is in the backup. A run that is killed here forgets it, and the next one finds it.
	return errors.Join(stopped, m.backup.write(context.WithoutCancel(ctx), m.options.Backup))
}

// importEach creates objects, and notes each of them that exists then. An error says why it was stopped; what was refused
// is in notMade.
func (m *Migration) importEach(ctx context.Context, missing []*Converted) error {
	made, refused := 0, 0

	for _, c := range missing {
		fresh, err := m.importOne(ctx, c)

		switch {
		case ctx.Err() != nil && err != nil:
			return errors.Join(m.notMade, err)
		case err != nil:
			m.notMade = errors.Join(m.notMade, err)
			refused++

			continue
		}

		m.backup.Imported = append(m.backup.Imported, c.ID())

		if fresh {
			made++
		}
	}

	m.say("      %d made, %d refused, the others were made before", made, refused)

	return nil
}

func (m *Migration) importOne(ctx context.Context, c *Converted) (bool, error) {
	of, known := kindNamed(c.Kind)
	if !known || c.Object == nil {
		return false, m.byHand(ctx, c)
	}

	fields, err := written(observed(c.Object))
	if err != nil {
		return false, err
	}

	obj := &unstructured.Unstructured{Object: fields}
	obj.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(of.Name))

	return m.hub.create(ctx, of.resource(), obj)
}

// byHand fails unless an object that cannot be converted exists: then its user, or an earlier version, has made it.
func (m *Migration) byHand(ctx context.Context, c *Converted) error {
	obj, err := m.live(ctx, c)
	if err != nil || obj != nil {
		return err
	}

	return fmt.Errorf("%s cannot be imported: %v. It is in the backup; make it by hand, and run this again", c.ID(), c.Refusals)
}

// live reads our object of a converted one; nil if it is gone.
func (m *Migration) live(ctx context.Context, c *Converted) (*unstructured.Unstructured, error) {
	of, known := kindNamed(c.Kind)
	if !known {
		return nil, fmt.Errorf("%s: this operator has no such kind", c.ID())
	}

	return m.hub.get(ctx, of.resource(), c.Namespace, c.Name)
}

// typed reads an object of a known kind.
func typed[T any](obj *unstructured.Unstructured) (*T, error) {
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, into); err != nil {
		return nil, fmt.Errorf("%s: %w", idOf(obj), err)
	}

	return into, nil
}

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
