// +k8s:deepcopy-gen=package
// +groupName=omni.texashpc.com

// Package omni holds the hub types of the omni.texashpc.com API: the form in which the API server
// works on objects, whatever version a client speaks. Only the API server uses it; clients and the
// controller use v1alpha1, where the fields are documented for users.
package omni
