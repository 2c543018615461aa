// Package version says which build of the program runs.
package version
