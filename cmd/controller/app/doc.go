// Package app is the command line of omni-controller: Options -> Validate ->
// Config -> Run. There is no logic here beyond putting the parts together, and
// the checks that have to pass before any part may start.
package app
