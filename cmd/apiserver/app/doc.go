// Package app is the command line of omni-apiserver. It parses flags into Options, completes and validates them, and
// turns them into the configuration that pkg/apiserver runs. It has no other logic.
package app
