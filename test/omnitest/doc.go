// Package omnitest is for tests: an in-memory Omni whose watches can be cut and whose writes can be refused, and the
// resources and templates that tests put into it.
package omnitest
