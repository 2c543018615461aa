package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// LocalObjectReference names an object in the namespace of the object that holds the reference.
type LocalObjectReference struct {
	// name of the referenced object. It must be in the same namespace.
	// +required
	Name string `json:"name"`
}

// SecretKeyReference names one key of a Secret in the same namespace.
type SecretKeyReference struct {
	// name of the Secret. It must be in the same namespace.
	// +required
	Name string `json:"name"`

	// key inside the Secret's data.
	// +optional
	Key string `json:"key,omitempty"`
}

// KeyReference names one key of a ConfigMap or Secret in the same namespace.
type KeyReference struct {
	// name of the ConfigMap or Secret. It must be in the same namespace.
	// +required
	Name string `json:"name"`

	// key inside the object's data.
	// +required
	Key string `json:"key"`
}

// ValueSource reads a text from a ConfigMap or a Secret. Exactly one member must be set.
type ValueSource struct {
	// configMapKeyRef reads the text from a key of a ConfigMap.
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`

	// secretKeyRef reads the text from a key of a Secret. The content is never shown in a status, event or log.
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`
}

// FreeForm is a JSON object whose content this API does not define. Integers of 64 bits are
// always kept. Quote other numbers whose digits matter, such as 1.0 or 2^63: server-side apply
// reads them as 64-bit floats.
// +k8s:openapi-gen=x-kubernetes-preserve-unknown-fields:true
type FreeForm struct {
	// Raw is the object's JSON text without insignificant white space.
	Raw []byte `json:"-"`
}

// Duration is a length of time in Go's notation, such as 30s, 10m or 24h. It is kept as written.
type Duration string

// Patch is a Talos machine configuration patch. Exactly one of inline and valueFrom, and at least
// one of name and idOverride, must be set.
type Patch struct {
	// name of the patch. One of name and idOverride is required. Omni derives the patch's ID from its level, its
	// position in the list and this name.
	// +optional
	Name string `json:"name,omitempty"`

	// idOverride is the ID of the patch in Omni, instead of the derived one.
	// +optional
	IDOverride string `json:"idOverride,omitempty"`

	// labels are copied to the patch in Omni. The prefix omni.sidero.dev/ is Omni's own and refused.
	// +optional
	Labels map[string]string `json:"labels,omitzero"`

	// annotations are copied to the patch in Omni. The prefix omni.sidero.dev/ is Omni's own and refused.
	// +optional
	Annotations map[string]string `json:"annotations,omitzero"`

	// inline is the patch itself, a fragment of a Talos machine configuration.
	// +optional
	Inline *FreeForm `json:"inline,omitempty"`

	// valueFrom reads the patch, as YAML text, from a ConfigMap or Secret.
	// +optional
	ValueFrom *ValueSource `json:"valueFrom,omitempty"`
}

// MachineClass takes the machines of a set from a machine class of Omni.
type MachineClass struct {
	// name of the machine class in Omni.
	// +required
	Name string `json:"name"`

	// size is the number of machines, or "unlimited" for every machine that matches the class.
	// Lowering it wipes the machines that leave the set. Omni's other spellings, "3" and "infinity", are taken too.
	// +required
	Size *intstr.IntOrString `json:"size"`
}

// StrategyType says how machines of a set are changed.
// +enum
type StrategyType string

const (
	// StrategyRolling changes a bounded number of machines at a time.
	StrategyRolling StrategyType = "Rolling"
	// StrategyUnset leaves it to Omni: machines are updated and upgraded one at a time, and removed all at once.
	StrategyUnset StrategyType = "Unset"
)

// Strategy says how many machines of a set are changed at a time.
type Strategy struct {
	// type is Rolling or Unset. With Unset, Omni updates and upgrades one machine at a time, and removes all at once. Left
	// out, it is Omni's default: Rolling for updates, Unset for upgrades and deletions.
	// +optional
	Type StrategyType `json:"type,omitempty"`

	// rolling bounds a Rolling strategy.
	// +optional
	Rolling *RollingStrategy `json:"rolling,omitempty"`
}

// RollingStrategy bounds a Rolling strategy.
type RollingStrategy struct {
	// maxParallelism is the largest number of machines changed at the same time. Left out, or 0, it is 1.
	// +optional
	MaxParallelism int32 `json:"maxParallelism,omitempty"`
}

// ReconcileStatus is the part of the status that all kinds have.
type ReconcileStatus struct {
	// observedGeneration is the metadata.generation that the rest of the status speaks of; -1 until
	// the controller has looked at the object for the first time.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastHandledReconcileAt is the value of the annotation omni.texashpc.com/reconcile-requested-at
	// (or reconcile.fluxcd.io/requestedAt) that was handled last.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// conditions say what is true of the object now. Ready always exists; Reconciling and Stalled
	// exist only while they are true.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// DeletionPolicy says what happens to what an object wrote when the object is deleted.
// +enum
type DeletionPolicy string

const (
	// DeletionDelete removes what the object wrote.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionOrphan leaves what the object wrote.
	DeletionOrphan DeletionPolicy = "Orphan"
)
