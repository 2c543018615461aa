// Package apiserver makes the aggregated API server of omni.texashpc.com: the scheme, the OpenAPI
// configuration, the storage of all kinds and the checks that decide when it is ready.
//
// It has no remote side effects: it stores and validates, and calls nothing but its storage and, for
// authentication, authorisation and admission, the hub's kube-apiserver. cmd/apiserver turns flags
// into a Config.
package apiserver
