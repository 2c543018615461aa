// Package version reports which build of the program runs.
package version
