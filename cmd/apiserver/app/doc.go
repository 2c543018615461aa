// Package app is the command line of omni-apiserver. It parses flags into Options, completes and validates them, and
// turns them into the configuration that pkg/apiserver runs. Around the server it starts and stops the embedded etcd with its upkeep
// and scheduled snapshots. The commands snapshot save, restore and status are here, too.
package app
