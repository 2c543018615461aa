// Package app is the command line of omni-apiserver: flags become Options, Options are completed and
// validated, and turn into the configuration that pkg/apiserver runs. It decides nothing itself.
package app
