// Package disk writes files that survive a loss of power, and asks how much space is left.
package disk
