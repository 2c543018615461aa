// Package requestbody checks the bodies of requests before the library decodes them: how long one may be, how many
// values and what nesting it may have, that it has no YAML aliases, and how much memory all of them may take together.
// It also makes a merge patch of a strategic merge patch that means the same.
//
// pkg/apiserver makes it one of its handlers, with Bound; cmd/apiserver names MaxBytes in its options. How large an
// object may be that is stored is for pkg/registry/internal/kit to say.
package requestbody
