// Package controllers puts the controllers of all kinds together: they share
// the sessions with Omni, the indexes of the cache and the metrics. It is the
// only package of this tree that commands use, and it has no logic.
package controllers
