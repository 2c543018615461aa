// Package omnitest is for tests: an Omni in memory whose watches can be lost and whose
// writes can be refused, with the resources and templates that tests put into it.
package omnitest
