// Package omnikubeconfigexport describes how the API server serves OmniKubeconfigExports.
package omnikubeconfigexport
