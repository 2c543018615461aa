// Package requestbody checks the bodies of requests before the library decodes them: how long one may be, how many
// values and what nesting it may have, that it has no YAML aliases, and how much memory all of them may take together
// (how long one holds its part: pkg/registry/memory).
// It turns a strategic merge patch into a merge patch where both mean the same, and keeps the body of a create for
// field ownership (registry.WithCreation).
//
// pkg/apiserver makes it one of its handlers, with Bound, and has the tests with a running server; cmd/apiserver names
// MaxBytes in its options. How large an object may be that is stored is for pkg/registry/internal/kit to say.
package requestbody
