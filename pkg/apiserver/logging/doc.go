// Package logging decides what omni-apiserver's own log may hold: everything that the libraries log, but no content.
//
// It is a package of its own because the filter is one of the whole process, to be set before anything else runs.
package logging
