package migrate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// makeHarmless sets the policies with which the old operator would destroy nothing. The old operator is stopped; this
// is a precaution in case somebody starts it again. Each policy is in the backup by then: what a user has written since
// would be lost, as the saved one comes back.
func (m *Migration) makeHarmless(ctx context.Context) error {
	s, err := m.readState(ctx)
	if err != nil {
		return err
	}

	for i := range s.Objects {
		at := &s.Objects[i]
		if isHarmless(at) {
			continue
		}

		if err := m.isSavedAsItIs(at); err != nil {
			return err
		}

		policy := harmless(at.GetKind())
		if fields, ok := policy.(map[string]any); ok {
			fields["destroyMachines"] = nil
		}

		err := m.patchTheirs(ctx, s, at, map[string]any{
			"metadata": map[string]any{"resourceVersion": at.GetResourceVersion()}, // of the object that the backup has
			"spec":     map[string]any{policyField(at.GetKind()): policy},
		})
		if err != nil {
			return ofConflict(at, err)
		}
	}

	return nil
}

// isSaved fails for an object that the backup does not have.
func (m *Migration) isSaved(obj *unstructured.Unstructured) error {
	if !m.backup.has(obj) {
		return fmt.Errorf("%s was made after the backup: run this again", idOf(obj))
	}

	return nil
}

// release removes the old operator's finalizers, and the owner references of Secrets that would be garbage-collected
// with their owners.
func (m *Migration) release(ctx context.Context) error {
	s, err := m.readState(ctx)
	if err != nil {
		return err
	}

	for i := range s.Objects {
		if !holds(&s.Objects[i]) {
			continue
		}

		if err := m.isSaved(&s.Objects[i]); err != nil {
			return err
		}

		if err := m.releaseOne(ctx, s, &s.Objects[i]); err != nil {
			return err
		}
	}

	for i := range s.Owned {
		if err := m.disown(ctx, &s.Owned[i]); err != nil {
			return err
		}
	}

	return nil
}

// releaseOne removes one finalizer from the version of the object that was read, since the patch replaces the whole
// list.
func (m *Migration) releaseOne(ctx context.Context, s *state, obj *unstructured.Unstructured) error {
	var left any // null removes the field
	if others := slices.DeleteFunc(obj.GetFinalizers(), func(finalizer string) bool { return finalizer == theirFinalizer }); len(others) > 0 {
		left = others
	}

	return ofConflict(obj, m.patchTheirs(ctx, s, obj, map[string]any{"metadata": map[string]any{"finalizers": left, "resourceVersion": obj.GetResourceVersion()}}))
}

// ofConflict says what to do about a patch of an object that somebody has written since it was read. Other errors stay.
func ofConflict(obj *unstructured.Unstructured, err error) error {
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%s was written meanwhile by somebody else: stop that, and run this again", idOf(obj))
	}

	return err
}

// disown removes the owner references to our group from a Secret in the backup.
func (m *Migration) disown(ctx context.Context, secret *metav1.PartialObjectMetadata) error {
	if !slices.ContainsFunc(m.backup.Owned, func(one ownedSecret) bool { return one.UID == secret.UID }) {
		return fmt.Errorf("Secret %s/%s got an owner after the backup: run this again", secret.Namespace, secret.Name)
	}

	var left any // null removes the field
	if others := slices.DeleteFunc(slices.Clone(secret.OwnerReferences), func(owner metav1.OwnerReference) bool { return isOurs(owner.APIVersion) }); len(others) > 0 {
		left = others
	}

	return m.hub.patchSecret(ctx, secret.Namespace, secret.Name, map[string]any{
		"metadata": map[string]any{"ownerReferences": left, "resourceVersion": secret.ResourceVersion},
	})
}

// quietRounds is how often changes by others are added to the backup before they stop the migration.
const quietRounds = 3

// checkQuiet makes sure that nothing of the old operator runs and that nobody writes, so that the backup has the final
// state. Changes that users made since the backup are saved, and these objects are made harmless, too.
func (m *Migration) checkQuiet(ctx context.Context) error {
	var written []string

	for range quietRounds {
		for _, again := range []func(context.Context) error{m.check, m.save, m.makeHarmless, m.release} {
			if err := again(ctx); err != nil {
				return err
			}
		}

		before, err := m.readState(ctx)
		if err != nil {
			return err
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(m.options.QuietTime):
		}

		running, err := m.running(ctx)
		if err != nil {
			return err
		}

		if running != "" {
			return fmt.Errorf("the old operator runs again: %s. Stop what starts it, and run this again", running)
		}

		after, err := m.readState(ctx)
		if err != nil {
			return err
		}

		if written = changedBetween(before, after); len(written) == 0 {
			return nil
		}

		m.say("      changed meanwhile: %s", strings.Join(written, "; "))
	}

	return fmt.Errorf("somebody goes on writing: %s. If it is the old operator, it runs without the Deployment that was stopped "+
		"(name it with --deployment); if it is a GitOps tool, suspend it. Then run this again", strings.Join(written, "; "))
}

// changedBetween returns the objects that differ between two states.
func changedBetween(before, after *state) []string {
	var found []string

	for i := range after.Objects {
		now := &after.Objects[i]

		switch then := sameName(before.Objects, now); {
		case then == nil:
			found = append(found, idOf(now)+" was made")
		case then.GetResourceVersion() != now.GetResourceVersion() || then.GetUID() != now.GetUID():
			found = append(found, idOf(now)+" was written by "+strings.Join(latestWriters(now), ", "))
		}
	}

	for i := range before.Objects {
		if sameName(after.Objects, &before.Objects[i]) == nil {
			found = append(found, idOf(&before.Objects[i])+" was deleted")
		}
	}

	return found
}

// latestWriters returns the field managers of the last write, also of the status.
func latestWriters(obj *unstructured.Unstructured) []string {
	var latest time.Time

	writers := map[string]bool{}

	for _, entry := range obj.GetManagedFields() {
		if entry.Time == nil || entry.Time.Time.Before(latest) {
			continue
		}

		if entry.Time.Time.After(latest) {
			latest = entry.Time.Time

			clear(writers)
		}

		writers[entry.Manager] = true
	}

	if len(writers) == 0 {
		return []string{"somebody"}
	}

	return slices.Sorted(maps.Keys(writers))
}

// weOwn reports whether a field, or a part of it, was last written by this command.
func weOwn(obj *unstructured.Unstructured, path ...string) bool {
	return lastWriters(obj, path...)[fieldManager]
}

// onlyWeWrote reports whether nobody but this command has written a field, or any part of it.
func onlyWeWrote(obj *unstructured.Unstructured, path ...string) bool {
	writers := lastWriters(obj, path...)

	return len(writers) == 1 && writers[fieldManager]
}

// othersThanUs names the other field managers that own a field, for people.
func othersThanUs(obj *unstructured.Unstructured, path ...string) string {
	writers := lastWriters(obj, path...)
	delete(writers, fieldManager)

	if len(writers) == 0 {
		return "somebody else"
	}

	return strings.Join(slices.Sorted(maps.Keys(writers)), ", ")
}

// lastWriters returns the field managers that own a field, or a part of it. Without a path it returns those that own
// anything.
func lastWriters(obj *unstructured.Unstructured, path ...string) map[string]bool {
	writers := map[string]bool{}

	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource != "status" && ownsPath(entry.FieldsV1, path) {
			writers[entry.Manager] = true
		}
	}

	return writers
}

// ownsPath reports whether managed fields have a field, or a part of it.
func ownsPath(fields *metav1.FieldsV1, path []string) bool {
	if len(path) == 0 {
		return true
	}

	owned := &fieldpath.Set{}
	if fields == nil || owned.FromJSON(fields.GetRawReader()) != nil {
		return false
	}

	last := len(path) - 1
	for _, name := range path[:last] {
		owned = owned.WithPrefix(fieldpath.PathElement{FieldName: &name})
	}

	field := fieldpath.PathElement{FieldName: &path[last]}

	return owned.Members.Has(field) || !owned.WithPrefix(field).Empty()
}

// withoutUs returns the managed fields of an object without ours.
func withoutUs(obj *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	kept := []metav1.ManagedFieldsEntry{}

	for _, entry := range obj.GetManagedFields() {
		if entry.Manager != fieldManager {
			kept = append(kept, entry)
		}
	}

	return kept
}
