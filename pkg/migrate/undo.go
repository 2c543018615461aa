package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ErrTooLate says that the definitions, and their objects with them, are deleted or being deleted.
var ErrTooLate = errors.New("the definitions are deleted, or being deleted: there is no way back. Run `migrate run` again, which goes on")

// Undo restores what Run changed: first the finalizers, so that no object is deleted without the old operator; then
// the policies and owners; then the webhooks; last the operator itself. It can be run again.
func (m *Migration) Undo(ctx context.Context) error {
	s, err := m.readState(ctx)
	if err != nil {
		return err
	}

	if m.backup, err = readBackup(ctx, m.options.Backup); err != nil {
		return err
	}

	if m.backup == nil {
		return fmt.Errorf("there is no backup %s: nothing was changed, or the file of the run is missing", m.options.Backup)
	}

	if err := m.backup.belongsTo(s.HubID); err != nil {
		return err
	}

	if m.backup.irreversible(s) {
		return ErrTooLate
	}

	for _, put := range []func(context.Context, *state) error{m.putFinalizers, m.putPolicies, m.putOwners, m.putWebhooks, m.putReplicas} {
		if err := put(ctx, s); err != nil {
			return err
		}
	}

	return nil
}

func (m *Migration) putFinalizers(ctx context.Context, s *state) error {
	for i := range m.backup.Objects {
		old := &m.backup.Objects[i]
		live := sameName(s.Objects, old)

		switch {
		case live == nil || live.GetUID() != old.GetUID():
			m.say("%s is not there any more: somebody deleted it. Nothing was destroyed; it is in the backup", idOf(old))
		case live.GetDeletionTimestamp() != nil:
			m.say("%s is being deleted, and stays as it is: its deletion destroys nothing", idOf(old))
		case holds(old) && !holds(live):
			finalizers := append(live.GetFinalizers(), theirFinalizer)
			if err := m.patchTheirs(ctx, s, live, map[string]any{"metadata": map[string]any{
				"finalizers": finalizers, "resourceVersion": live.GetResourceVersion(),
			}}); err != nil {
				return err
			}
		}
	}

	m.say("finalizers are back")

	return nil
}

// putPolicies restores the objects' policies, except where the user has set another one meanwhile.
func (m *Migration) putPolicies(ctx context.Context, s *state) error {
	for i := range m.backup.Objects {
		old := &m.backup.Objects[i]

		live := sameName(s.Objects, old)
		if live == nil || live.GetUID() != old.GetUID() || live.GetDeletionTimestamp() != nil || !madeHarmless(live) {
			continue
		}

		wanted := live.DeepCopy()
		restorePolicy(wanted, old)

		field := policyField(old.GetKind())

		value, _, err := unstructured.NestedFieldCopy(wanted.Object, "spec", field)
		if err != nil {
			return fmt.Errorf("%s: %w", idOf(old), err)
		}

		if fields, ok := value.(map[string]any); ok {
			value = withNulls(fields, "orphan", "destroyMachines")
		}

		if err := m.patchTheirs(ctx, s, live, map[string]any{"spec": map[string]any{field: value}}); err != nil {
			return err
		}
	}

	m.say("policies are back")

	return nil
}

// withNulls adds a null to the merge patch for each member that the old value does not have, which removes the
// member.
func withNulls(fields map[string]any, names ...string) map[string]any {
	for _, name := range names {
		if _, found := fields[name]; !found {
			fields[name] = nil
		}
	}

	return fields
}

// putOwners gives Secrets back to the objects that owned them, as far as these are there: the garbage collector deletes a Secret
// all of whose owners are gone.
func (m *Migration) putOwners(ctx context.Context, s *state) error {
	for _, old := range m.backup.Owned {
		owned := false
		for i := range s.Owned {
			owned = owned || s.Owned[i].UID == old.UID
		}

		if owned {
			continue
		}

		owners := livingOwners(s, old.Owners)
		if !slices.ContainsFunc(owners, isOurObject) {
			m.say("Secret %s/%s stays without an owner: its object is gone, or being deleted", old.Namespace, old.Name)

			continue
		}

		err := m.hub.patchSecret(ctx, old.Namespace, old.Name, map[string]any{"metadata": map[string]any{"uid": old.UID, "ownerReferences": owners}})

		switch {
		case apierrors.IsConflict(err):
			m.say("Secret %s/%s was made anew by somebody, and stays as it is", old.Namespace, old.Name)
		case err != nil:
			return err
		}
	}

	m.say("owner references are back")

	return nil
}

// livingOwners returns owners without the objects of our group that are gone or being deleted. One that was made anew is
// another object.
func livingOwners(s *state, owners []metav1.OwnerReference) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(owners), func(owner metav1.OwnerReference) bool {
		return isOurObject(owner) && !slices.ContainsFunc(s.Objects, func(obj unstructured.Unstructured) bool {
			return obj.GetUID() == owner.UID && obj.GetDeletionTimestamp() == nil
		})
	})
}

func isOurObject(owner metav1.OwnerReference) bool { return isOurs(owner.APIVersion) }

func (m *Migration) putWebhooks(ctx context.Context, s *state) error {
	for i := range m.backup.Webhooks {
		if sameName(s.Webhooks, &m.backup.Webhooks[i]) != nil {
			continue
		}

		resource := validatingResource
		if m.backup.Webhooks[i].GetKind() == "MutatingWebhookConfiguration" {
			resource = mutatingResource
		}

		if _, err := m.hub.create(ctx, resource, anew(&m.backup.Webhooks[i])); err != nil {
			return err
		}
	}

	m.say("webhook configurations are back")

	return nil
}

// anew returns an object without the fields that the server sets.
func anew(obj *unstructured.Unstructured) *unstructured.Unstructured {
	fresh := obj.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(fresh.Object, "metadata", field)
	}

	return fresh
}

func (m *Migration) putReplicas(ctx context.Context, s *state) error {
	for i := range m.backup.Deployments {
		old := &m.backup.Deployments[i]

		live := sameName(s.Deployments, old)
		if live == nil {
			m.say("%s is not there any more: install it again", idOf(old))

			continue
		}

		if replicas(live) == 0 && replicas(old) > 0 {
			if err := m.scale(ctx, live, replicas(old)); err != nil {
				return err
			}
		}

		m.say("%s has %d replicas", idOf(old), replicas(old))
	}

	return nil
}
