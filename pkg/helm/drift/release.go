package drift

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
)

// Marks that Helm puts on every object of a release. They are not in the
// stored manifest, but applied together with it.
const (
	managedByLabel      = "app.kubernetes.io/managed-by"
	managedByHelm       = "Helm"
	releaseAnnotation   = "meta.helm.sh/release-name"
	namespaceAnnotation = "meta.helm.sh/release-namespace"
)

// maxDifferentPaths is how many paths of one object are named.
const maxDifferentPaths = 10

// Release is the release whose objects are compared. They bear marks with its name and namespace.
type Release struct {
	// Name is Helm's name of the release, Namespace where it is.
	Name, Namespace string
	// FieldManager is the name under which the release owns fields.
	FieldManager string
}

// Whose tells whose a live object is, by Helm's marks on it: this release's, another's, which is named as namespace/name, or
// nobody's. What bears no marks, or half of ours, is nobody's: somebody removed them, or made the object again.
func (r Release) Whose(live map[string]any) (ours bool, other string) {
	object := unstructured.Unstructured{Object: live}
	annotations := object.GetAnnotations()
	name, namespace := annotations[releaseAnnotation], annotations[namespaceAnnotation]

	if name != "" && name != r.Name || namespace != "" && namespace != r.Namespace {
		return false, cmp.Or(namespace, r.Namespace) + "/" + cmp.Or(name, r.Name)
	}

	return name != "" && namespace != "" && object.GetLabels()[managedByLabel] == managedByHelm, ""
}

// Wrote reports whether an object bears the field manager of the releases: one of them has written it.
func (r Release) Wrote(live map[string]any) bool {
	object := unstructured.Unstructured{Object: live}

	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == r.FieldManager })
}

// Marks are Helm's marks of this release.
func (r Release) Marks() (labels, annotations map[string]string) {
	return map[string]string{managedByLabel: managedByHelm}, map[string]string{releaseAnnotation: r.Name, namespaceAnnotation: r.Namespace}
}

// Compare tells how an object of the stored manifest differs from what the cluster has: by a server-side dry run, whose
// changes are what differs. It is nil if nothing does, or if a Job is gone that the chart lets the cluster remove, and names 10
// pointers at most and how many more there are. With correct, an object that differs is applied again; what ignored pointers
// lead to stays as it is. An object that another release has by now is told and never applied: the two would take turns.
// Errors are those of the cluster; one of applying an object that is missing comes with the difference.
func (r Release) Compare(info *resource.Info, ignores []Ignore, correct bool) (*Difference, error) {
	wanted, err := r.marked(info)
	if err != nil || info.Name == "" { // a generated name has no counterpart
		return nil, err
	}

	object := Identify(info)
	ignored := pathsFor(object, ignores)

	live, err := Get(info)
	if clusteraccess.NotFound(err) {
		if expires(info, wanted) {
			return nil, nil //nolint:nilnil // it has done its work
		}

		if correct {
			_, err = r.apply(info, wanted, false)
		} else {
			err = nil
		}

		return &Difference{Object: object, Missing: true}, err
	}

	if err != nil {
		return nil, err
	}

	if _, other := r.Whose(live); other != "" {
		return &Difference{Object: object, Owner: other}, nil
	}

	paths, err := r.differences(info, live, wanted, ignored)
	if err != nil {
		return nil, err
	}

	if len(paths) == 0 {
		return nil, nil //nolint:nilnil // nothing differs, nothing failed
	}

	if correct {
		if _, err := r.apply(info, wanted, false); err != nil {
			return nil, err
		}
	}

	if len(paths) > maxDifferentPaths {
		paths = append(paths[:maxDifferentPaths], fmt.Sprintf("and %d more", len(paths)-maxDifferentPaths))
	}

	return &Difference{Object: object, Paths: paths}, nil
}

// comparisons is how often an object is compared that somebody writes meanwhile.
const comparisons = 3

// differences returns the pointers to what an apply would change. A write between the read and the dry run shows in the dry run
// alone, and is no difference: then both are made anew.
func (r Release) differences(info *resource.Info, live, wanted map[string]any, ignored []string) (paths []string, err error) {
	for range comparisons {
		for _, pointer := range ignored {
			copyPath(live, wanted, pointer)
		}

		result, err := r.apply(info, wanted, true)
		if err != nil {
			return nil, err
		}

		if paths = diff(live, result, append(slices.Clone(ignored), serverPaths()...)); len(paths) == 0 {
			return nil, nil
		}

		before := versionOf(live)

		if live, err = Get(info); err != nil {
			return nil, err
		}

		if versionOf(live) == before {
			break
		}
	}

	return paths, nil
}

func versionOf(object map[string]any) string {
	return (&unstructured.Unstructured{Object: object}).GetResourceVersion()
}

// DryRun asks the server what an apply of an object of the manifest would come to. The error is that of the cluster.
func (r Release) DryRun(info *resource.Info) error {
	wanted, err := r.marked(info)
	if err != nil {
		return err
	}

	_, err = r.apply(info, wanted, true)

	return err
}

// expires reports whether the cluster removes an object when it has done its work: a Job whose manifest says so. Who makes it again
// runs it again.
func expires(info *resource.Info, wanted map[string]any) bool {
	if kind := info.Mapping.GroupVersionKind; kind.Group != "batch" || kind.Kind != "Job" {
		return false
	}

	lifetime, _, err := unstructured.NestedFieldNoCopy(wanted, "spec", "ttlSecondsAfterFinished")

	return err == nil && lifetime != nil
}

// Identify names an object of a manifest as the cluster knows it.
func Identify(info *resource.Info) Object {
	kind := info.Mapping.GroupVersionKind

	return Object{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: info.Namespace, Name: info.Name}
}

// marked is an object of the manifest as Helm applies it.
func (r Release) marked(info *resource.Info) (map[string]any, error) {
	object, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return nil, errors.New("the object is not readable")
	}

	marked := object.DeepCopy()
	labels, annotations := marked.GetLabels(), marked.GetAnnotations()

	if labels == nil {
		labels = map[string]string{}
	}

	if annotations == nil {
		annotations = map[string]string{}
	}

	markLabels, markAnnotations := r.Marks()
	maps.Copy(labels, markLabels)
	maps.Copy(annotations, markAnnotations)
	marked.SetLabels(labels)
	marked.SetAnnotations(annotations)

	return marked.Object, nil
}

// Get reads an object as the cluster has it. The error is that of the cluster, also if the object does not exist.
func Get(info *resource.Info) (map[string]any, error) {
	found, err := resource.NewHelper(info.Client, info.Mapping).Get(info.Namespace, info.Name)
	if err != nil {
		return nil, err
	}

	return asMap(found)
}

// apply applies an object as the release does, or only asks what that would give.
func (r Release) apply(info *resource.Info, object map[string]any, dryRun bool) (map[string]any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write the object: %w", err)
	}

	force := true

	result, err := resource.NewHelper(info.Client, info.Mapping).DryRun(dryRun).WithFieldManager(r.FieldManager).
		WithFieldValidation(string(kube.FieldValidationDirectiveIgnore)).
		Patch(info.Namespace, info.Name, types.ApplyPatchType, data, &metav1.PatchOptions{Force: &force})
	if err != nil {
		return nil, err
	}

	return asMap(result)
}

func asMap(object any) (map[string]any, error) {
	typed, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("the answer has the unknown type %T", object)
	}

	return typed.Object, nil
}
