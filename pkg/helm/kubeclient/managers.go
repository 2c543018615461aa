package kubeclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
)

// otherManagers are the names under which other clients of Helm 4 own the fields that they have applied: its command line, and the
// controller of Flux.
func otherManagers() []string { return []string{"helm", "helm-controller"} }

// appliedObject is an object of the release that another client of Helm has applied, and the name under which that owns its fields.
type appliedObject struct {
	info    *resource.Info
	manager string
}

// appliedBy is the first other client of Helm that owns fields of an object of the release; empty if none does, and of every other object.
func (f found) appliedBy() string {
	if !f.ours {
		return ""
	}

	object := unstructured.Unstructured{Object: f.live}
	for _, entry := range object.GetManagedFields() {
		if isApplied(entry, otherManagers()) {
			return entry.Manager
		}
	}

	return ""
}

// takeFields makes the release own what other clients of Helm have applied to its objects. It does so before an update: that then drops
// what the chart does not have any more in the write that applies the rest, so that Pods restart once, and nothing that the former
// chart wanted is in the way of the new one. Helm itself knows one manager, and keeps what another one wants.
func (g *Guard) takeFields(objects []appliedObject) error {
	for _, one := range objects {
		if err := g.takeFieldsOf(one); err != nil {
			return fmt.Errorf("no object was changed, because the fields of %s could not be taken from the client %q of Helm: %w", drift.Identify(one.info), one.manager, err)
		}
	}

	return nil
}

// takeFieldsOf asks the server first: what it does not let go, as of a Job, stays with the other client, and the update goes on
// without that. The dry run is one of the client that owns the fields. If several do, that one gets all of them before, and the
// server is asked about those that more than one owns, too. Unless the answer is that they may go, each gets back what it had.
func (g *Guard) takeFieldsOf(object appliedObject) error {
	var before []metav1.ManagedFieldsEntry

	err := g.change(object.info, func(fields []metav1.ManagedFieldsEntry) (joined []metav1.ManagedFieldsEntry, changed bool, err error) {
		before = fields

		return joinFields(fields, g.managers(), object.manager)
	})
	if err != nil {
		return err
	}

	former := g.Release
	former.FieldManager = object.manager

	mayGo := former.DryRun(object.info)
	if mayGo == nil {
		return g.change(object.info, func(fields []metav1.ManagedFieldsEntry) (joined []metav1.ManagedFieldsEntry, changed bool, err error) {
			return joinFields(fields, g.managers(), g.Release.FieldManager)
		})
	}

	err = g.change(object.info, func(fields []metav1.ManagedFieldsEntry) (restored []metav1.ManagedFieldsEntry, changed bool, err error) {
		restored, changed = restoreFields(fields, before, g.managers())

		return restored, changed, nil
	})

	// If the object is invalid in any case, the update says so. A request is bad if a webhook cannot tell without a write.
	if apierrors.IsInvalid(mayGo) || apierrors.IsBadRequest(mayGo) {
		return err
	}

	return errors.Join(mayGo, err)
}

// managers are the release and the other clients of Helm.
func (g *Guard) managers() []string { return append(otherManagers(), g.Release.FieldManager) }

// change changes the managed fields of an object of the release, and nothing else of it. It writes nothing if they are not changed.
func (g *Guard) change(info *resource.Info, edit func([]metav1.ManagedFieldsEntry) (edited []metav1.ManagedFieldsEntry, changed bool, err error)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		there, err := g.find(info)
		if err != nil || !there.ours {
			return err
		}

		object := unstructured.Unstructured{Object: there.live}

		fields, changed, err := edit(object.GetManagedFields())
		if err != nil || !changed {
			return err
		}

		patch, err := json.Marshal([]map[string]any{
			{"op": "replace", "path": "/metadata/managedFields", "value": fields},
			// A test of it would be no conflict, which is tried again.
			{"op": "replace", "path": "/metadata/resourceVersion", "value": object.GetResourceVersion()},
		})
		if err != nil {
			return err
		}

		_, err = resource.NewHelper(info.Client, info.Mapping).WithFieldManager(g.Release.FieldManager).
			Patch(info.Namespace, info.Name, types.JSONPatchType, patch, nil)
		if clusteraccess.NotFound(err) {
			return nil // the update makes it anew
		}

		return err
	})
}

// restoreFields are managed fields in which some managers have applied what they had before; changed is false if they have still.
func restoreFields(fields, before []metav1.ManagedFieldsEntry, managers []string) (restored []metav1.ManagedFieldsEntry, changed bool) {
	applied := func(entry metav1.ManagedFieldsEntry) bool { return isApplied(entry, managers) }
	others := func(entry metav1.ManagedFieldsEntry) bool { return !applied(entry) }

	had := slices.DeleteFunc(slices.Clone(before), others)
	restored = append(slices.DeleteFunc(slices.Clone(fields), applied), had...)

	return restored, !equality.Semantic.DeepEqual(had, slices.DeleteFunc(slices.Clone(fields), others))
}

// joinFields are managed fields in which one manager has applied what several have; changed is false if it has already. A manager
// has one version: fields of another one that this does not have are not among the object's, and mean nothing.
func joinFields(fields []metav1.ManagedFieldsEntry, from []string, to string) (joined []metav1.ManagedFieldsEntry, changed bool, err error) {
	var owner metav1.ManagedFieldsEntry

	all := fieldpath.NewSet()

	for _, entry := range fields {
		if !isApplied(entry, from) {
			joined = append(joined, entry)

			continue
		}

		var set fieldpath.Set
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, false, fmt.Errorf("read the managed fields of %q: %w", entry.Manager, err)
		}

		all = all.Union(&set)

		if owner.Manager == "" || entry.Manager == to {
			owner = entry
		}

		changed = changed || entry.Manager != to
	}

	if !changed {
		return fields, false, nil
	}

	text, err := all.ToJSON()
	if err != nil {
		return nil, false, fmt.Errorf("write the managed fields of %q: %w", to, err)
	}

	owner.Manager, owner.FieldsV1 = to, &metav1.FieldsV1{}
	owner.FieldsV1.SetRawBytes(text)

	return append(joined, owner), true, nil
}

// isApplied reports whether managed fields are what one of some managers has applied.
func isApplied(entry metav1.ManagedFieldsEntry, managers []string) bool {
	return entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil &&
		slices.Contains(managers, entry.Manager)
}
