package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/kvutils"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/protobuf/reflect/protoreflect"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// We write only what we own. The library's update of a resource is the template's resource, without everything else that
// Omni has on it. startFromLive adds that again: fields that the client library does not know, features that no template
// can express or that this one leaves unset, and the labels and annotations of others.

// startFromLive returns an update that starts from the live resource: what the template asks for, and what of the live
// resource is not ours. asked stays as it is.
func (b planBuilder) startFromLive(ctx context.Context, live, asked resource.Resource) resource.Resource {
	updated := asked.DeepCopy()
	updated.Metadata().Annotations().Delete(v1alpha1.MarkApplied) // a document may have it from an export of somebody's

	wrote, recorded := appliedOf(live)

	keepKeys(live.Metadata().Labels(), updated.Metadata().Labels(), func(key string) bool {
		return slices.Contains(wrote.Labels, key) || isOurLabel(key)
	})
	keepKeys(live.Metadata().Annotations(), updated.Metadata().Annotations(), func(key string) bool {
		return slices.Contains(wrote.Annotations, key) || b.isOurAnnotation(live, key)
	})

	was, hadMessage := protoOf(live)
	if is, hasMessage := protoOf(updated); hadMessage && hasMessage {
		keepUnknown(was.ProtoReflect(), is.ProtoReflect())
	}

	b.keepUnset(live, updated, wrote)
	keepBytes(ctx, live, updated)

	// A record alone is no reason to write: what was there before, and is the same, was not written by us.
	if recorded {
		recordApplied(asked, updated)
	}

	return updated
}

// keepUnset keeps the fields that the template leaves unset, of those that it may leave alone.
func (b planBuilder) keepUnset(live, updated resource.Resource, wrote applied) {
	switch is := updated.(type) {
	case *omnires.Cluster:
		was, spec := live.(*omnires.Cluster).TypedSpec().Value, is.TypedSpec().Value //nolint:forcetypeassert // an update keeps the type
		spec.Features.EnableNodeAuditSkip = was.GetFeatures().GetEnableNodeAuditSkip()

		// An interval of 0s, which turns backups off, is none to the library, too.
		if !b.backup && !slices.Contains(wrote.Fields, fieldBackup) {
			spec.BackupConfiguration = was.GetBackupConfiguration()
		}

		b.features.set(is)
	case *omnires.MachineSet:
		was, spec := live.(*omnires.MachineSet).TypedSpec().Value, is.TypedSpec().Value //nolint:forcetypeassert // an update keeps the type
		if spec.BootstrapSpec == nil {
			spec.BootstrapSpec = was.GetBootstrapSpec()
		}
	case *omni.MachineInstallDiskConfig:
		is.TypedSpec().Unknown = live.(*omni.MachineInstallDiskConfig).TypedSpec().Unknown //nolint:forcetypeassert // an update keeps the type
	}
}

// keepBytes keeps the text of a patch that differs in its format only. Omni looks at the text when its bytes change, and may refuse
// by then what it holds.
func keepBytes(ctx context.Context, live, updated resource.Resource) {
	was, hadText := live.(*omnires.ConfigPatch)
	is, hasText := updated.(*omnires.ConfigPatch)

	if hadText && hasText && sameContent(ctx, live, updated) {
		is.TypedSpec().Value = was.TypedSpec().Value.CloneVT()
	}
}

// keyValues are labels or annotations.
type keyValues interface {
	Get(key string) (string, bool)
	Set(key, value string)
	Raw() map[string]string
	Do(func(kvutils.TempKV))
}

// keepKeys keeps what the update lacks and is not ours.
func keepKeys(live, updated keyValues, ours func(key string) bool) {
	updated.Do(func(kept kvutils.TempKV) {
		for key, value := range live.Raw() {
			if _, asked := kept.Get(key); !asked && !ours(key) {
				kept.Set(key, value)
			}
		}
	})
}

// isOurLabel reports whether a label is one that decides where a template puts a resource. Its other labels of Omni are always
// the same for the same ID.
func isOurLabel(key string) bool {
	switch key {
	case omnires.LabelMachineSet, omnires.LabelClusterMachine, omnires.LabelSystemPatch:
		return true
	default:
		return false
	}
}

// isOurAnnotation reports whether an annotation goes if the template lacks it, whoever set it. Only a Machine document can set a
// lock: without one, a lock is that of the people who set it in Omni.
func (b planBuilder) isOurAnnotation(item resource.Resource, key string) bool {
	switch {
	case strings.HasPrefix(key, v1alpha1.GroupName+"/"), key == omnires.ResourceManagedByClusterTemplates:
		return true
	case key == omnires.MachineLocked:
		return item.Metadata().Type() == omnires.MachineSetNodeType && b.described[item.Metadata().ID()]
	default:
		return false
	}
}

// keepUnknown keeps the fields that the client library does not know, of a message and of those in it. A message that the
// update does not have goes as a whole.
func keepUnknown(live, updated protoreflect.Message) {
	if unknown := live.GetUnknown(); len(unknown) > 0 {
		updated.SetUnknown(slices.Clone(unknown))
	}

	updated.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Message() != nil && !field.IsList() && !field.IsMap() && live.Has(field) {
			keepUnknown(live.Get(field).Message(), value.Message())
		}

		return true
	})
}

// applied is the content of the annotation v1alpha1.MarkApplied: what a template put on a resource that others can put on it,
// too. It goes with the template that does not have it any more.
type applied struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	// Fields of the spec: fieldBackup.
	Fields []string `json:"fields,omitempty"`
}

// fieldBackup is the name of ClusterSpec.BackupConfiguration.
const fieldBackup = "backupConfiguration"

// maxApplied is the longest value of an annotation that Omni takes, in bytes. What a longer one would list is not recorded, and
// stays when the template drops it.
const maxApplied = 16 << 10

// appliedOf reads the record on a resource; recorded is false if there is none, or none that can be read.
func appliedOf(item resource.Resource) (found applied, recorded bool) {
	text, has := item.Metadata().Annotations().Get(v1alpha1.MarkApplied)
	if !has || json.Unmarshal([]byte(text), &found) != nil {
		return applied{}, false
	}

	return found, true
}

// recordApplied writes the record of what the template asks for into the resource that is written. A template has neither labels
// nor annotations of users for KernelArgs and MachineInstallDiskConfigs.
func recordApplied(asked, written resource.Resource) {
	written.Metadata().Annotations().Delete(v1alpha1.MarkApplied)

	switch asked.Metadata().Type() {
	case omnires.KernelArgsType, omni.MachineInstallDiskConfigType:
		return
	}

	record := applied{Labels: usersKeys(asked.Metadata().Labels().Raw()), Annotations: usersKeys(asked.Metadata().Annotations().Raw())}

	switch asked.Metadata().Type() {
	case omnires.ConfigPatchType, omnires.KubernetesManifestGroupType, omnires.KubernetesHealthCheckType: // the library writes their names
		record.Annotations = slices.DeleteFunc(record.Annotations, func(key string) bool { return key == "name" })
	}

	if cluster, isCluster := asked.(*omnires.Cluster); isCluster && cluster.TypedSpec().Value.GetBackupConfiguration() != nil {
		record.Fields = []string{fieldBackup}
	}

	if text, err := json.Marshal(record); err == nil && string(text) != "{}" && len(text) <= maxApplied {
		written.Metadata().Annotations().Set(v1alpha1.MarkApplied, string(text))
	}
}

// usersKeys returns the keys that a user chose: neither Omni's nor ours.
func usersKeys(all map[string]string) []string {
	var keys []string

	for key := range all {
		if !strings.HasPrefix(key, omnires.SystemLabelPrefix) && !strings.HasPrefix(key, v1alpha1.GroupName+"/") {
			keys = append(keys, key)
		}
	}

	slices.Sort(keys)

	return keys
}

// maxFields is how many fields changedFields names.
const maxFields = 10

// changedFields names what an update changes, without any value: labels, annotations and fields of the spec. "content" is the
// text of a patch, of manifests or of a job.
func changedFields(live, updated resource.Resource) string {
	names := changedKeys("label", live.Metadata().Labels().Raw(), updated.Metadata().Labels().Raw())
	names = append(names, changedKeys("annotation", live.Metadata().Annotations().Raw(), updated.Metadata().Annotations().Raw())...)

	was, hadMessage := protoOf(live)
	is, hasMessage := protoOf(updated)

	if bare, holdsText := withoutText(live); hadMessage && hasMessage && holdsText {
		if before, _ := content(live); before != contentOf(updated) {
			names = append(names, "content")
		}

		was, _ = protoOf(bare)
		bare, _ = withoutText(updated)
		is, _ = protoOf(bare)
	}

	if hadMessage && hasMessage {
		names = append(names, changedIn("", was.ProtoReflect(), is.ProtoReflect())...)
	}

	names = append(names, changedDisk(live, updated)...)

	if more := len(names) - maxFields; more > 0 {
		names = append(names[:maxFields], fmt.Sprintf("%d more", more))
	}

	return strings.Join(names, ", ")
}

func contentOf(item resource.Resource) string {
	text, _ := content(item)

	return text
}

// changedKeys names labels or annotations that differ, without our record of them.
func changedKeys(what string, before, after map[string]string) []string {
	var names []string

	for _, key := range sortedKeys(before, after) {
		was, had := before[key]
		is, has := after[key]

		if (was != is || had != has) && key != v1alpha1.MarkApplied {
			names = append(names, fmt.Sprintf("%s %q", what, key))
		}
	}

	return names
}

func sortedKeys(all ...map[string]string) []string {
	var keys []string

	for _, some := range all {
		for key := range some {
			keys = append(keys, key)
		}
	}

	slices.Sort(keys)

	return slices.Compact(keys)
}

// changedIn names the fields of a message that differ. The field that Omni has and the library has not is a feature.
func changedIn(path string, before, after protoreflect.Message) []string {
	var names []string

	fields := after.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		was, is := before.Get(field), after.Get(field)

		switch {
		case was.Equal(is) && before.Has(field) == after.Has(field):
		case field.Message() != nil && !field.IsList() && !field.IsMap() && before.Has(field) && after.Has(field):
			names = append(names, changedIn(path+field.JSONName()+".", was.Message(), is.Message())...)
		default:
			names = append(names, path+field.JSONName())
		}
	}

	if featuresDiffer(before, after) {
		names = append(names, path+"disablePublicDiscoveryService")
	}

	return names
}
