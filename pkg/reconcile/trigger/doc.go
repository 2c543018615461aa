// Package trigger lets something outside Kubernetes wake a controller.
//
// A Trigger is fired from callbacks that must not block, such as those of the
// local copies of Omni. It gathers what was fired, finds the objects that are
// concerned in its own goroutine, and adds them to the controller's queue.
package trigger
