// Package controllernamespaces is the admission plugin that warns who creates, changes or deletes an object in a
// namespace that no controller watches: it would be stored, and then wait for ever.
package controllernamespaces
