// Package exportcommand implements the command export of omni-controller and of the plugin kubectl omni.
package exportcommand
