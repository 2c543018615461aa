// Package exporttarget is the admission plugin that lets nobody have a kubeconfig written into another namespace whom the
// management cluster would not let write Secrets there: the controller writes with its own rights.
package exporttarget
