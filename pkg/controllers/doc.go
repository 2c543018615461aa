// Package controllers puts the controllers of all kinds together: they share
// the sessions with Omni, the indexes of the cache and the metrics. It is the
// only package of this tree that commands use, and it has no logic.
//
// Each kind's Add says what wakes its objects. A kind whose status repeats what Omni says (OmniConnection, OmniCluster,
// OmniKubeconfigExport) watches its own objects by loop.For, because such a status may change with each look; the other
// kinds look again after every change. Where Omni itself wakes objects, again and again (OmniConnection, OmniCluster),
// the rate limiter is Failures of the loop: its events must not end the pause after an error. Everywhere else it is
// loop.RateLimiter.
package controllers
