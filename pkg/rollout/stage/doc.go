// Package stage assigns clusters to the stages of a rollout, and computes how many clusters of a stage may have
// changes in progress, and how many have to run a version before it is proved. It is pure: it does no I/O and has no
// clock.
package stage
