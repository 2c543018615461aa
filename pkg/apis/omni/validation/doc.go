// Package validation holds every rule that can be decided from one object of omni.texashpc.com
// alone, for the API server. All functions are pure: they read the objects and nothing else.
//
// Each kind has one file with functions named alike: Validate<Kind> (create), Validate<Kind>Update
// (main resource), and, as far as it needs them, Validate<Kind>StatusUpdate (status subresource; else
// ValidateStatusUpdate), WarningsFor<Kind> (advice that refuses nothing) and Validate<Kind>Scale.
// Rules that need a second object belong to admission; rules that need every document of a cluster
// belong to the controller.
//
// Errors carry the exact path and name the remedy. Values that can hold a credential (patches,
// URLs with user info) are never repeated in an error.
package validation
