// Package controllernamespaces is the admission plugin that warns when an object is created in a
// namespace that no controller watches: it would be stored, and then wait for ever.
package controllernamespaces
