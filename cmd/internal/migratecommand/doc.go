// Package migratecommand implements the command migrate of omni-controller and of the plugin kubectl omni.
package migratecommand
