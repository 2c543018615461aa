// Package stage puts clusters into the stages of a rollout, and says how many of a stage may be at work, and which versions
// it has proved. It is pure: it asks nobody, and has no clock.
package stage
