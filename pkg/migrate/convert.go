package migrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
)

// Finding is one remark on a field of an object.
type Finding struct {
	// Field is its path, such as spec.patches[0].file.
	Field string
	// Text says what is the matter, and what to write instead.
	Text string
}

func (f Finding) String() string { return f.Field + ": " + f.Text }

// Converted is the result of converting one object of the operator with CRDs.
type Converted struct {
	Kind, Namespace, Name string
	// UID is the UID of the old object.
	UID types.UID
	// Object is the converted object, without a status and without our defaults. Nil if there are refusals.
	Object runtime.Object
	// Permission is the field of the spec that is set for the takeover only; empty if there is none, or if its user had
	// set it before.
	Permission string
	// Refusals have to be resolved before the migration.
	Refusals []Finding
	// Changes are fields that are written differently or have a different meaning here.
	Changes []Finding
	// Warnings are the warnings of our API server about the object.
	Warnings []string

	// rendered is the Secret of an object that becomes a manifest of an OmniCluster; empty for all others.
	rendered string
}

// ID names the object for people.
func (c *Converted) ID() string { return c.Kind + " " + c.Namespace + "/" + c.Name }

// lastApplied is the annotation with kubectl's copy of what it applied: a manifest for the other operator.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Convert converts an object of the operator with CRDs to ours. It is pure: the same object gives the same result,
// and it makes no calls. It uses only the spec, labels and annotations; status, finalizers and UIDs belong to the
// other operator.
func Convert(old *unstructured.Unstructured) *Converted {
	c := &Converted{Kind: old.GetKind(), Namespace: old.GetNamespace(), Name: old.GetName(), UID: old.GetUID()}

	of, known := kindNamed(c.Kind)
	if !known {
		c.refuse("kind", "this operator has no such kind: save what you need of it, stop the old operator (scale its Deployment to 0), and only then delete it. "+
			"While the old operator runs, the deletion takes what the object has rendered out of the workload cluster")

		return c
	}

	if old.GetDeletionTimestamp() != nil {
		c.refuse("metadata.deletionTimestamp", "it is being deleted: wait until the old operator has finished, "+
			"or find out what it waits for (kubectl describe)")
	}

	metadata, spec := c.metadata(old), c.spec(old)
	if spec == nil {
		return c
	}

	if obj := c.decode(of, metadata, spec); obj != nil {
		if wanted, _, _ := unstructured.NestedBool(spec, of.permission); !wanted {
			c.Permission = of.permission
		}

		c.Changes = append(c.Changes, of.adapt(obj)...)
		c.check(of, obj)

		if len(c.Refusals) == 0 {
			c.Object = obj
		}
	}

	return c
}

// ConvertAll converts objects, in their order.
func ConvertAll(old []unstructured.Unstructured) []*Converted {
	all := make([]*Converted, 0, len(old))
	for i := range old {
		all = append(all, Convert(&old[i]))
	}

	carryRendered(old, all)
	noteReferences(all)
	refuseSameCluster(all)

	return all
}

func (c *Converted) refuse(field, text string) {
	c.Refusals = append(c.Refusals, Finding{field, text})
}

func (c *Converted) change(field, text string) {
	c.Changes = append(c.Changes, Finding{field, text})
}

// metadata returns the metadata that stays: the name, labels, and annotations.
func (c *Converted) metadata(old *unstructured.Unstructured) map[string]any {
	metadata := map[string]any{"name": c.Name, "namespace": c.Namespace}

	if labels := c.keep(old.GetLabels(), "metadata.labels"); len(labels) > 0 {
		metadata["labels"] = labels
	}

	if annotations := c.keep(old.GetAnnotations(), "metadata.annotations"); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}

	// Our objects get new UIDs; with a reference to an old UID, the object would be garbage-collected.
	var owners []metav1.OwnerReference

	for _, owner := range old.GetOwnerReferences() {
		if isOurs(owner.APIVersion) {
			c.change("metadata.ownerReferences", fmt.Sprintf("that to %s %s goes: its UID goes with the definitions", owner.Kind, owner.Name))
		} else {
			owners = append(owners, owner)
		}
	}

	if len(owners) > 0 {
		metadata["ownerReferences"] = owners
	}

	return metadata
}

// keep leaves out kubectl's copy, and keys with the prefix of the group: the other operator's own marks, and
// annotations that our operator would take for requests.
func (c *Converted) keep(entries map[string]string, path string) map[string]string {
	kept := map[string]string{}

	for _, key := range slices.Sorted(maps.Keys(entries)) {
		switch {
		case key == lastApplied:
		case strings.HasPrefix(key, v1alpha1.GroupName+"/"):
			c.change(fmt.Sprintf("%s[%s]", path, key), "goes: it is the old operator's own")
		default:
			kept[key] = entries[key]
		}
	}

	return kept
}

// isOurs reports whether an apiVersion is of our group.
func isOurs(apiVersion string) bool { return strings.HasPrefix(apiVersion, v1alpha1.GroupName+"/") }

// decode decodes the object strictly: a field that we do not have is refused, and never silently dropped.
func (c *Converted) decode(of kind, metadata, spec map[string]any) object {
	text, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": of.Name, "metadata": metadata, "spec": spec,
	})
	if err != nil {
		c.refuse("spec", "cannot be read: "+err.Error())

		return nil
	}

	obj := of.make()

	strict, err := kjson.UnmarshalStrict(text, obj)
	if err != nil {
		c.refuse("spec", "does not fit: "+err.Error())

		return nil
	}

	for _, problem := range strict {
		c.refuse(unknownField(problem), "this operator has no such field: remove it, or see docs/how-to/migrate.md for what to write instead")
	}

	return obj
}

// unknownField returns the path of the field in an error of the strict decoder.
func unknownField(problem error) string {
	var at kjson.FieldError
	if errors.As(problem, &at) {
		return strings.TrimPrefix(at.FieldPath(), ".")
	}

	return problem.Error()
}

// check applies our rules to a copy with our defaults.
func (c *Converted) check(of kind, obj object) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		c.refuse("kind", "cannot be checked: "+err.Error())

		return
	}

	settled, _ := obj.DeepCopyObject().(object)
	scheme.Default(settled)

	problems, warnings := of.check(settled)
	for _, problem := range problems {
		c.refuse(problem.Field, problem.ErrorBody())
	}

	c.checkSize(settled)
	c.Warnings = append(c.Warnings, warnings...)
}

// checkSize applies the limits of our API server to the spec: definitions store larger ones.
func (c *Converted) checkSize(obj object) {
	var encoded struct {
		Spec json.RawMessage `json:"spec"`
	}

	text, err := json.Marshal(obj)
	if err == nil {
		err = json.Unmarshal(text, &encoded)
	}

	if err != nil {
		c.refuse("spec", "cannot be written: "+err.Error())

		return
	}

	for _, problem := range validation.ValidateSpecSize(encoded.Spec) {
		c.refuse(problem.Field, problem.ErrorBody())
	}
}

// refuseSameCluster refuses an OmniCluster that is the same cluster in Omni as one before it, as our API server does.
func refuseSameCluster(all []*Converted) {
	holders := map[[3]string]string{}

	for _, c := range all {
		cluster, ok := c.Object.(*v1alpha1.OmniCluster)
		if !ok {
			continue
		}

		claim := [3]string{c.Namespace, cluster.Spec.ConnectionRef.Name, cluster.EffectiveClusterName()}
		if holder, taken := holders[claim]; taken {
			c.refuse("spec.clusterName", fmt.Sprintf("OmniCluster %s is the same cluster in Omni: keep one of the two. "+
				"Set deletePolicy.orphan of the other before you delete it, or the old operator destroys the cluster", holder))
			c.Object = nil

			continue
		}

		holders[claim] = c.Name
	}
}
