// Package index has the field indexes of the controllers' cache, and the lookups over them, so that no controller lists
// and filters.
//
// They are registered once for all controllers, because an index belongs to a kind in the cache and not to a
// controller.
package index
