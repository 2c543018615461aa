// Package hub tells the management clusters apart that may hold the same objects: one that was restored from a snapshot
// of another has objects with the same UIDs. The ID of a hub is part of every ownership mark that is written outside of it.
package hub
