// Package exporttarget is the admission plugin that refuses to export a kubeconfig into another namespace if the user
// may not write Secrets there: the controller writes with its own rights, not with the user's.
package exporttarget
