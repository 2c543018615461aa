// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.texashpc.omni.v1alpha1
// +k8s:deepcopy-gen=package
// +k8s:defaulter-gen=TypeMeta
// +groupName=omni.texashpc.com

// Package v1alpha1 is the served and stored version of the omni.texashpc.com API, and the form in which
// omni-apiserver works on objects: there are no internal types.
//
// The field comments are the user documentation that `kubectl explain` prints. Defaults live in
// defaults.go, condition types and reasons in conditions.go, and everything that other
// rooms compute from a spec (effective names, parsed durations) in effective.go.
package v1alpha1
