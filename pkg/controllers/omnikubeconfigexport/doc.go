// Package omnikubeconfigexport is the controller of OmniKubeconfigExport: it requests kubeconfigs from Omni, keeps one
// in a Secret, and renews it in time.
//
// Pure functions decide everything that needs no request: token.go and format.go read and write kubeconfigs,
// rotation.go has the times, inspect.go, ownership.go and need.go judge the existing Secret. reconciler.go and issue.go
// call them in order. Only secret.go writes Secrets, and only removal.go deletes them.
//
// A token cannot be revoked. So the controller requests none that it could not store, limits the requests of each
// export, and keeps an issued kubeconfig in memory until it is stored.
package omnikubeconfigexport
