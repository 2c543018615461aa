// Package exporttarget is the admission plugin that refuses to export a kubeconfig into another namespace if the user
// may not write Secrets there, and, with references checked, to have an export take over a Secret that the user may not
// replace and delete: the controller writes with its own rights, not with the user's.
package exporttarget
