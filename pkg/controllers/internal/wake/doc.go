// Package wake lets something outside Kubernetes wake a controller.
//
// A Bell is rung from callbacks that must not block, such as those of the local
// copies of Omni. It gathers what was rung, finds the objects that are
// concerned in its own goroutine, and adds them to the controller's queue.
package wake
