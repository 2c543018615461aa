// Package registry puts all kinds together: one storage each, made by
// pkg/registry/internal/kit from the descriptors in pkg/registry/omni. pkg/apiserver installs the
// result.
package registry
