// Package trigger lets events from outside Kubernetes trigger a controller.
//
// A Trigger is fired from callbacks that must not block, such as those of the local copies of Omni. It collects the
// keys, looks up the objects that they concern in its own goroutine, and adds them to the controller's queue.
package trigger
