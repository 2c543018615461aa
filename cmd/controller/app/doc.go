// Package app is the command line of omni-controller: Options -> Validate -> Config -> Run. It connects the parts,
// and runs the checks that have to pass before any part may start. It has no other logic.
package app
