package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// shownValue is how many characters of a value a table shows.
const shownValue = 40

// fieldChange is a field of an object that would be another one. Now and Then are nil for a field that is not there.
type fieldChange struct {
	Object string `json:"object"`
	Field  string `json:"field"`
	Now    any    `json:"now,omitempty"`
	Then   any    `json:"then,omitempty"`
}

// planFiles sends the objects of our group in files to the API server as a dry run, and tells in which fields they differ
// from what is there. Nothing is changed. What Omni would make of it, nobody knows before. An object that is refused does not
// keep the others from being shown.
func (t *tool) planFiles(ctx context.Context, files []string, format string) error {
	namespace, explicit, err := t.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return fmt.Errorf("find the namespace: %w", err)
	}

	config, err := t.config()
	if err != nil {
		return err
	}

	http.DefaultClient.Timeout = config.Timeout // the library gets files of https with it

	builder := resource.NewBuilder(&boundedGetter{t.flags, config}).Unstructured().NamespaceParam(namespace).DefaultNamespace().RequireNamespace().
		FilenameParam(explicit, &resource.FilenameOptions{Filenames: files, Recursive: true}).Flatten().ContinueOnError()

	found, err := untilDone(ctx, func() (comparison, error) { return compareFiles(builder) })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}

	problems := []error{err}

	if found.others > 0 {
		_, err := fmt.Fprintf(t.ErrOut, "%d objects of other groups are left out.\n", found.others)
		problems = append(problems, err)
	}

	if problem := errors.Join(append(problems, t.writeFieldChanges(format, found.changes))...); problem != nil || len(found.changes) == 0 {
		return problem
	}

	return errChanges
}

// comparison is how the objects of files differ from those that are there.
type comparison struct {
	changes []fieldChange
	others  int // objects of other groups
}

// compareFiles compares the objects that a builder finds. The library knows no context.
func compareFiles(builder *resource.Builder) (comparison, error) {
	found := comparison{changes: []fieldChange{}}
	infos, err := builder.Do().Infos()
	problems := []error{err}

	for _, info := range infos {
		if info.Mapping.GroupVersionKind.Group != v1alpha1.GroupName {
			found.others++

			continue
		}

		changes, err := planFile(info)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %q: %w", info.Mapping.GroupVersionKind.Kind, info.Name, err))
		}

		found.changes = append(found.changes, changes...)
	}

	return found, errors.Join(problems...)
}

// boundedGetter finds the management cluster by the flags, and bounds each request to it.
type boundedGetter struct {
	*genericclioptions.ConfigFlags

	config *rest.Config
}

// ToRESTConfig is how the library reaches objects.
func (g *boundedGetter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

func (t *tool) writeFieldChanges(format string, changes []fieldChange) error {
	if done, err := t.encode(format, changes); done {
		return err
	}

	if len(changes) == 0 {
		return t.told("Nothing differs.")
	}

	drawn := &table{colour: t.colour}
	drawn.add(plain, "OBJECT", "FIELD", "NOW", "THEN")

	for _, change := range changes {
		drawn.add(plain, change.Object, change.Field, shown(change.Now), shown(change.Then))
	}

	return drawn.write(t.Out)
}

// planFile is in which fields an object in a file differs from the one that is there.
func planFile(info *resource.Info) ([]fieldChange, error) {
	wanted, err := json.Marshal(info.Object)
	if err != nil {
		return nil, err
	}

	helper := resource.NewHelper(info.Client, info.Mapping)

	there, err := helper.Get(info.Namespace, info.Name)
	created := apierrors.IsNotFound(err)

	if err != nil && !created {
		return nil, err
	}

	manager := fieldManager
	if !created {
		manager = applierOf(there)
	}

	force := true

	then, err := helper.DryRun(true).WithFieldManager(manager).
		Patch(info.Namespace, info.Name, types.ApplyPatchType, wanted, &metav1.PatchOptions{Force: &force, FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return nil, err
	}

	object := info.Mapping.GroupVersionKind.Kind + "/" + info.Name
	if created {
		return []fieldChange{{Object: object, Field: "(created)"}}, nil
	}

	changes := changesBetween(there, then)
	for i := range changes {
		changes[i].Object = object
	}

	return changes, nil
}

// changesBetween is in which fields an object would differ from the one that is there. What the tool that applies it writes on
// every object is in no file, and comes back.
func changesBetween(there, then runtime.Object) []fieldChange {
	now, planned := contentOf(there), contentOf(then)

	for _, key := range gitManagers[applierOf(there)] {
		for _, kind := range []string{"labels", "annotations"} {
			if _, set, _ := unstructured.NestedFieldNoCopy(planned, "metadata", kind, key); set {
				continue
			}

			unstructured.RemoveNestedField(now, "metadata", kind, key)

			if left, _, _ := unstructured.NestedMap(now, "metadata", kind); len(left) == 0 {
				unstructured.RemoveNestedField(now, "metadata", kind)
			}
		}
	}

	return compare(now, planned)
}

// applierOf is who applies an object by server-side apply: as him the dry run shows, too, what would be taken out.
func applierOf(there runtime.Object) string {
	if o, is := there.(metav1.Object); is {
		for _, entry := range o.GetManagedFields() {
			if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
				return entry.Manager
			}
		}
	}

	return fieldManager
}

// contentOf is what a file may say of an object.
func contentOf(o runtime.Object) map[string]any {
	found, is := o.(*unstructured.Unstructured)
	if !is {
		return nil
	}

	content := map[string]any{"spec": found.Object["spec"]}
	metadata := map[string]any{}

	if labels := found.GetLabels(); len(labels) > 0 {
		metadata["labels"] = anyMap(labels)
	}

	if annotations := found.GetAnnotations(); len(annotations) > 0 {
		metadata["annotations"] = anyMap(annotations)
	}

	content["metadata"] = metadata

	return content
}

func anyMap(texts map[string]string) map[string]any {
	found := map[string]any{}
	for key, value := range texts {
		found[key] = value
	}

	return found
}

// compare lists the fields that differ, in the order of their paths. Lists of the same length are compared element by
// element; others differ as a whole.
func compare(now, then any) []fieldChange { return compareAt("", now, then) }

func compareAt(path string, now, then any) []fieldChange {
	if reflect.DeepEqual(now, then) {
		return nil
	}

	var changes []fieldChange

	before, isMap := now.(map[string]any)
	after, areMaps := then.(map[string]any)

	if isMap && areMaps {
		keys := maps.Clone(before)
		maps.Copy(keys, after)

		for _, key := range slices.Sorted(maps.Keys(keys)) {
			changes = append(changes, compareAt(join(path, key), before[key], after[key])...)
		}

		return changes
	}

	old, isList := now.([]any)
	fresh, areLists := then.([]any)

	if isList && areLists && len(old) == len(fresh) {
		for i := range old {
			changes = append(changes, compareAt(path+"["+strconv.Itoa(i)+"]", old[i], fresh[i])...)
		}

		return changes
	}

	return []fieldChange{{Field: path, Now: now, Then: then}}
}

func join(path, key string) string {
	if path == "" {
		return key
	}

	return path + "." + key
}

// shown is a value in a table.
func shown(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return cut(value, shownValue)
	default:
		text, err := json.Marshal(value)
		if err != nil {
			return "?"
		}

		return cut(string(text), shownValue)
	}
}

// gitManagers are the field managers of the tools that apply what Git says, each with the labels and annotations that it writes
// on every object to know its own.
var gitManagers = map[string][]string{ //nolint:gochecknoglobals // a table
	"kustomize-controller": {"kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace"},
	"helm-controller": {
		"helm.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/namespace",
		"app.kubernetes.io/managed-by", "meta.helm.sh/release-name", "meta.helm.sh/release-namespace",
	},
	"flux-operator":                       {"resourceset.fluxcd.controlplane.io/name", "resourceset.fluxcd.controlplane.io/namespace"},
	"argocd-controller":                   {"argocd.argoproj.io/tracking-id"},
	"argocd-application-controller":       nil, // client-side apply: no dry run takes anything out
	"kubectl-client-side-apply-by-argocd": nil,
}

// ownedByGit names the tool that applies a field from Git; empty if none does.
func ownedByGit(o metav1.Object, path ...string) string {
	if manager := gitManagerOf(o.GetManagedFields(), path...); manager != "" {
		return manager
	}

	if appliedLast(o, path...) {
		return gitManagerOf(o.GetManagedFields(), "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	}

	return ""
}

// appliedLast reports whether the last client-side apply set a field. If it set the value that was there, as a false that is
// always written, no manager owns the field.
func appliedLast(o metav1.Object, path ...string) bool {
	applied := map[string]any{}
	if json.Unmarshal([]byte(o.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), &applied) != nil {
		return false
	}

	_, found, err := unstructured.NestedFieldNoCopy(applied, path...)

	return found && err == nil
}

// gitManagerOf names the tool of Git that owns a field; empty if none does.
func gitManagerOf(fields []metav1.ManagedFieldsEntry, path ...string) string {
	parts := make([]any, 0, len(path))
	for _, part := range path {
		parts = append(parts, part)
	}

	wanted := fieldpath.MakePathOrDie(parts...)

	for _, entry := range fields {
		if _, isGit := gitManagers[entry.Manager]; !isGit || entry.FieldsV1 == nil || entry.Subresource != "" {
			continue
		}

		set := &fieldpath.Set{}
		if set.FromJSON(strings.NewReader(entry.FieldsV1.GetRawString())) == nil && set.Has(wanted) {
			return entry.Manager
		}
	}

	return ""
}

// refuseIfGitOwns is an error that says what to commit, if Git owns a field. Whatever were written would be taken back at the
// tool's next look, or after it has already had its effect.
func refuseIfGitOwns(o object, kind string, value any, path ...string) error {
	manager := ownedByGit(o, path...)
	if manager == "" {
		return nil
	}

	text, err := json.Marshal(value)
	if err != nil {
		return err
	}

	return fmt.Errorf("%s of %s %q comes from Git (%s): commit it there instead:\n  %s: %s", strings.Join(path, "."), kind, o.GetName(), manager,
		strings.Join(path, "."), text)
}
