// Package window computes when a change may begin: in weekly windows of a time zone, and never during a freeze. It is
// pure: it has no clock of its own, and its results depend on the arguments only.
//
// Windows limit when something begins, not when it ends. The windows of one Calendar are joined: if one ends while
// another is open, the calendar stays open.
package window
