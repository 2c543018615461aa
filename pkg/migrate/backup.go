package migrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/disk"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/version"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// backupFormat is the first field of a backup file.
const backupFormat = "omni-migrate-backup/v1"

// backup holds everything that a migration changes or removes, in its state before. It has no content of Secrets.
type backup struct {
	Format string `json:"format"`
	// HubID is the UID of the namespace kube-system: a backup belongs to one hub.
	HubID   string      `json:"hubID"`
	Version string      `json:"version"`
	Made    metav1.Time `json:"made"`

	Definitions []unstructured.Unstructured `json:"definitions"`
	Deployments []unstructured.Unstructured `json:"deployments"`
	Webhooks    []unstructured.Unstructured `json:"webhooks"`
	Objects     []unstructured.Unstructured `json:"objects"`
	Owned       []ownedSecret               `json:"ownedSecrets"`

	// Imported are the IDs of the objects that exist with this operator, or did: one that is gone was deleted by a user.
	Imported []string `json:"imported,omitempty"`
}

// ownedSecret is a Secret that objects of the group own.
type ownedSecret struct {
	Namespace string                  `json:"namespace"`
	Name      string                  `json:"name"`
	UID       types.UID               `json:"uid"`
	Owners    []metav1.OwnerReference `json:"ownerReferences"`
}

// backupOf makes a backup of a state that the migration has not changed yet.
func backupOf(s *state, now time.Time) *backup {
	b := &backup{
		Format: backupFormat, HubID: s.HubID, Version: version.Get().String(), Made: words.StoredTime(now),
		Definitions: s.Definitions, Deployments: s.Deployments, Webhooks: s.Webhooks, Objects: s.Objects,
	}

	for i := range s.Owned {
		b.Owned = append(b.Owned, ownedSecret{
			Namespace: s.Owned[i].Namespace, Name: s.Owned[i].Name, UID: s.Owned[i].UID, Owners: s.Owned[i].OwnerReferences,
		})
	}

	return b
}

// irreversible reports whether the deletion of the definitions has begun: a definition of the backup is gone, is
// being deleted, or was replaced by another one.
func (b *backup) irreversible(s *state) bool {
	for i := range b.Definitions {
		live := sameName(s.Definitions, &b.Definitions[i])
		if live == nil || live.GetUID() != b.Definitions[i].GetUID() || live.GetDeletionTimestamp() != nil {
			return true
		}
	}

	return false
}

// merge makes the backup of a later state of the same hub. It includes what users changed since, but not what the
// migration itself changed. Objects that are gone stay in the backup if the old operator is stopped: their deletion had no
// effect. If it runs, for example after an undo, it did what their deletion asked for, and they do not come back. What
// went with its definition was deleted by this command, and stays.
func (b *backup) merge(s *state, now time.Time) *backup {
	merged := backupOf(s, now)
	merged.Imported = b.Imported
	merged.Definitions = mergeEach(b.Definitions, merged.Definitions, later)
	merged.Deployments = mergeEach(b.Deployments, merged.Deployments, laterDeployment)
	merged.Webhooks = mergeEach(b.Webhooks, merged.Webhooks, later)
	merged.Objects = mergeEach(b.Objects, merged.Objects, laterObject)

	if s.runs() {
		merged.Objects = slices.DeleteFunc(merged.Objects, func(obj unstructured.Unstructured) bool {
			return sameName(s.Objects, &obj) == nil && !b.wentWithDefinition(s, &obj)
		})
	}

	for _, old := range b.Owned {
		if at := slices.IndexFunc(merged.Owned, func(one ownedSecret) bool { return one.UID == old.UID }); at >= 0 {
			merged.Owned[at] = old
		} else {
			merged.Owned = append(merged.Owned, old)
		}
	}

	slices.SortFunc(merged.Owned, func(a, b ownedSecret) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})

	return merged
}

// wentWithDefinition reports whether an object of the backup went because its definition did: that is gone, or going, or
// younger than the object.
func (b *backup) wentWithDefinition(s *state, obj *unstructured.Unstructured) bool {
	live := definitionOf(s.Definitions, obj.GetKind())
	if live == nil {
		return definitionOf(b.Definitions, obj.GetKind()) != nil
	}

	definition, object := live.GetCreationTimestamp(), obj.GetCreationTimestamp()

	return live.GetDeletionTimestamp() != nil || object.Before(&definition)
}

// definitionOf finds the definition of a kind; nil if there is none.
func definitionOf(definitions []unstructured.Unstructured, kind string) *unstructured.Unstructured {
	for i := range definitions {
		if of, _, _ := unstructured.NestedString(definitions[i].Object, "spec", "names", "kind"); of == kind {
			return &definitions[i]
		}
	}

	return nil
}

// mergeEach merges two lists by kind, namespace and name. Objects of the live list come first, in its order, then
// those that are gone.
func mergeEach(old, live []unstructured.Unstructured, pick func(old, live *unstructured.Unstructured) unstructured.Unstructured) []unstructured.Unstructured {
	merged := make([]unstructured.Unstructured, 0, len(live))

	for i := range live {
		if before := sameName(old, &live[i]); before != nil {
			merged = append(merged, pick(before, &live[i]))
		} else {
			merged = append(merged, live[i])
		}
	}

	for i := range old {
		if sameName(live, &old[i]) == nil {
			merged = append(merged, old[i])
		}
	}

	return merged
}

// sameName finds the object of the same kind, namespace and name; nil if there is none.
func sameName(in []unstructured.Unstructured, obj *unstructured.Unstructured) *unstructured.Unstructured {
	for i := range in {
		if idOf(&in[i]) == idOf(obj) {
			return &in[i]
		}
	}

	return nil
}

func later(_, live *unstructured.Unstructured) unstructured.Unstructured { return *live }

// laterDeployment keeps the number of replicas from before the Deployment was stopped.
func laterDeployment(old, live *unstructured.Unstructured) unstructured.Unstructured {
	merged := live.DeepCopy()
	if replicas(live) == 0 {
		_ = unstructured.SetNestedField(merged.Object, replicas(old), "spec", "replicas")
	}

	return *merged
}

// replicas returns the replicas that a Deployment asks for; unset means one.
func replicas(deployment *unstructured.Unstructured) int64 {
	count, found, err := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	if err != nil || !found {
		return 1
	}

	return count
}

// laterObject keeps the finalizers and the policy from before they were removed, unless a user has set another policy
// since. An object that goes with its definition was saved before.
func laterObject(old, live *unstructured.Unstructured) unstructured.Unstructured {
	if live.GetDeletionTimestamp() != nil {
		return *old
	}

	merged := live.DeepCopy()

	if len(live.GetFinalizers()) == 0 {
		merged.SetFinalizers(old.GetFinalizers())
	}

	restorePolicy(merged, old)

	return *merged
}

// restorePolicy puts back what this command has changed of an object's policy, if nobody has written it since: the field
// with which the object lets go, and destroyMachines, which this command has removed beside it.
func restorePolicy(obj, from *unstructured.Unstructured) {
	if !madeHarmless(obj) {
		return
	}

	path := harmlessPath(obj.GetKind())
	copyField(obj, from, path...)

	policy := []string{"spec", policyField(obj.GetKind())}
	if len(path) == len(policy) {
		return
	}

	destroy := append(slices.Clone(policy), "destroyMachines")
	if _, set, _ := unstructured.NestedFieldNoCopy(obj.Object, destroy...); !set {
		copyField(obj, from, destroy...)
	}

	if left, _, _ := unstructured.NestedMap(obj.Object, policy...); len(left) == 0 {
		copyField(obj, from, policy...) // empty, or not there at all
	}
}

// copyField copies a field of one object to another; it removes one that is not there.
func copyField(obj, from *unstructured.Unstructured, path ...string) {
	value, found, err := unstructured.NestedFieldCopy(from.Object, path...)

	switch {
	case err != nil:
	case found:
		_ = unstructured.SetNestedField(obj.Object, value, path...)
	default:
		unstructured.RemoveNestedField(obj.Object, path...)
	}
}

// belongsTo refuses a backup of another hub.
func (b *backup) belongsTo(hubID string) error {
	if b.HubID != hubID {
		return fmt.Errorf("the backup is of another cluster (its kube-system has the UID %s, this one %s): give another file, or another kubeconfig", b.HubID, hubID)
	}

	return nil
}

// backupLimits bound a backup file that is read.
//
//nolint:gochecknoglobals // a constant
var backupLimits = foreign.Limits{Bytes: 1 << 30, Depth: 1000, Nodes: 100_000_000, Expanded: 1 << 30}

// readFile returns nil if there is no file. A file that is larger than a backup may be is an error.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}
	defer file.Close() // only read

	text, err := io.ReadAll(io.LimitReader(file, int64(backupLimits.Bytes)+1))
	if err == nil && len(text) > backupLimits.Bytes {
		err = fmt.Errorf("it has more than %d bytes: it is no file of this command", backupLimits.Bytes)
	}

	return text, err
}

// readBackup returns nil if there is no file.
func readBackup(ctx context.Context, path string) (*backup, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the backup %s: %w", path, err)
	}

	if text == nil {
		return nil, nil //nolint:nilnil // no file is an answer
	}

	read := &backup{}
	if err := foreign.Unmarshal(ctx, text, backupLimits, read); err != nil {
		return nil, fmt.Errorf("the backup %s cannot be read (%w): it is no file of this command, or damaged. It was left as it is", path, err)
	}

	if read.Format != backupFormat {
		return nil, fmt.Errorf("%s is no backup of this command (format %q, not %s): give another file. It was left as it is", path, read.Format, backupFormat)
	}

	return read, nil
}

// write replaces the file atomically: at every moment the old or the new one is on the disk. It reads the file back.
func (b *backup) write(ctx context.Context, path string) error {
	text, err := json.MarshalIndent(b, "", " ")
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}

	text = append(text, '\n')

	if err := disk.WriteFile(path, text); err != nil {
		return fmt.Errorf("write the backup %s: %w", path, err)
	}

	there, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the backup back: %w", err)
	}

	if !bytes.Equal(text, there) {
		return fmt.Errorf("the backup %s is not what was written: use another disk", path)
	}

	_, err = readBackup(ctx, path)

	return err
}
