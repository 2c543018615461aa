// Package omnikubeconfigexport is the controller of OmniKubeconfigExport: it
// asks Omni for kubeconfigs, keeps one in a Secret, and renews it in time.
//
// Whatever can be decided without asking anybody is decided by pure functions:
// token.go and format.go read and write kubeconfigs, rotation.go knows the
// times, decide.go judges the Secret that is there. reconciler.go and issue.go
// put them in order; only secret.go writes Secrets, and only removal.go deletes
// them.
//
// A token cannot be revoked. So nothing asks for one that could not be stored,
// each export is limited, and what was issued but not yet stored is kept in
// memory until it is.
package omnikubeconfigexport
